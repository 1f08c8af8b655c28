package gitrepo

import (
	"io/fs"
	"path/filepath"

	"github.com/toolhost/toolhost/guard/internal/realpath"
)

// Is reports whether git takes a directory for that of a repository.
func Is(dir string) bool { return holds(dir) }

// Hooks returns the directories of hooks that exist in a .git directory, those of submodules included.
func Hooks(git string) []string {
	var found []string
	if hooks := filepath.Join(git, "hooks"); realpath.Exists(hooks) {
		found = append(found, hooks)
	}
	// A directory that cannot be listed cannot be written by a command either.
	_ = filepath.WalkDir(filepath.Join(git, "modules"), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case d.IsDir() && d.Name() == "objects":
			return fs.SkipDir
		case d.IsDir() && d.Name() == "hooks":
			found = append(found, path)
			return fs.SkipDir
		}
		return nil
	})
	return found
}
