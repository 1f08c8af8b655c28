package gitrepo

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/internal/realpath"
)

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

// obeyed are the folded names in the directory of a repository that make it one, or that git obeys.
var obeyed = map[string]bool{
	"head": true, "objects": true, "refs": true, "commondir": true, "config": true, "config.worktree": true, "hooks": true,
	"modules": true, "worktrees": true,
}

// Completes reports whether git obeys what is written to a slashed path, because a directory above it is that of a
// repository then, whatever its name. Only what follows the first bytes of the path, a directory, is examined.
func Completes(path string, from int) bool {
	for at := from; at < len(path); {
		name, _, _ := strings.Cut(path[at:], "/")
		folded := pathname.Folded.Of(name)
		if obeyed[folded] && completes(filepath.FromSlash(path[:at]), folded) {
			return true
		}
		at += len(name) + 1
	}
	return false
}

// completes reports whether a directory is that of a repository once it has an entry of a folded name.
func completes(dir, name string) bool {
	has := func(entry string) bool {
		_, err := os.Lstat(filepath.Join(dir, entry))
		return err == nil || pathname.Folded.Of(entry) == name
	}
	return has("HEAD") && (has("objects") && has("refs") || has("commondir"))
}
