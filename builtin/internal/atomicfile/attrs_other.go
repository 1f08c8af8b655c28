//go:build !linux

package atomicfile

import (
	"os"
	"path/filepath"
)

func dirPath(dir *os.File) string {
	path, err := filepath.Abs(dir.Name())
	if err != nil {
		return dir.Name()
	}
	return path
}

// reserve does nothing: if there is no room, the write itself fails.
func reserve(*os.File, int64) error { return nil }
