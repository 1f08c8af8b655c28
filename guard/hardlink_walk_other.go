//go:build !linux

package guard

import (
	"io/fs"
	"path/filepath"

	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/internal/realpath"
)

// walk calls found for every name of each file that has several.
func (n *linkNames) walk(dir string, found func(name string, id realpath.ID)) {
	// A directory that cannot be listed cannot be opened through this process either.
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if n.left--; n.left < 0 {
			return filepath.SkipAll
		}
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			if id, names := realpath.Identify(info); names > 1 {
				found(pathname.Slashed(path), id)
			}
		}
		return nil
	})
}
