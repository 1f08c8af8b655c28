//go:build !unix

package readstate

import "io/fs"

// identity returns zeros: the platform does not report them, and hashes decide anyway.
func identity(fs.FileInfo) (dev, inode uint64) { return 0, 0 }
