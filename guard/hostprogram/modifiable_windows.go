package hostprogram

import "io/fs"

// modifiable says yes: access lists are not read.
func modifiable(string, fs.FileInfo) bool { return true }
