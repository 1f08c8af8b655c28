//go:build !linux

package mcpserver

import (
	"io/fs"
	"os"
)

// openedAs returns the name that a file was opened by. Only Linux opens paths without the file.
func openedAs(f *os.File) (name string, pathOnly bool) { return f.Name(), false }

func sameDevice(fs.FileInfo, fs.FileInfo) bool { return false }
