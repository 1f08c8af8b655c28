//go:build !unix

package auth

import "io/fs"

const openFlags = 0

// ours is not known here: access lists are not looked at.
func ours(fs.FileInfo) bool { return true }
