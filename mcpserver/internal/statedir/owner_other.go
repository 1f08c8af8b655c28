//go:build !unix

package statedir

import "io/fs"

// belongsHere is true: the directory is in the user's profile, which has an access list.
func belongsHere(fs.FileInfo) bool { return true }
