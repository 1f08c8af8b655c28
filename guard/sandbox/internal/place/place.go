// Package place says what object of the file system a path means: its name without symbolic links and its inode. Who
// resolves a path once and compares the inode later notices that the object was replaced in between.
package place

import (
	"path/filepath"
	"slices"
	"strings"
)

// Within reports whether path is dir or lies below it, element by element.
func Within(path, dir string) bool {
	return path == dir || Below(path, dir)
}

// WithinAny reports whether path is within one of dirs.
func WithinAny(path string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return Within(path, dir) })
}

// Below reports whether path lies strictly below dir.
func Below(path, dir string) bool {
	return strings.HasPrefix(path, dir) && len(path) > len(dir) &&
		(path[len(dir)] == filepath.Separator || strings.HasSuffix(dir, string(filepath.Separator)))
}
