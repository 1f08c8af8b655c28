//go:build !linux

package settle

import (
	"io/fs"
	"os"
)

// openForWriting cannot tell here.
func openForWriting(*os.Root, string) bool { return false }

func heldOpenOutside(fs.FileInfo) bool { return false }
