package gitrepo

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/realpath"
)

// A Found is where git, started in a directory, finds its repository.
type Found struct {
	// Dir is the directory that all work trees of the repository share. The directory of this work tree is it, or lies in
	// it.
	Dir string
	// Named is the file or link .git that names the directory, which does not name the work tree in turn; "" otherwise.
	// Who writes Named chooses Dir.
	Named string
}

// Find returns the repository of a directory, a real path; "" if there is none, or if it is not as git makes it.
func Find(dir string) Found {
	for {
		git := filepath.Join(dir, ".git")
		info, err := os.Lstat(git)
		switch {
		case err != nil:
		case info.IsDir() && Is(git):
			return Found{Dir: git}
		case info.Mode()&os.ModeSymlink != 0:
			real, err := filepath.EvalSymlinks(git)
			if err == nil && Is(real) {
				return Found{Dir: real, Named: git}
			}
			return Found{}
		case info.Mode().IsRegular():
			return named(dir)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return Found{}
		}
		dir = parent
	}
}

// named returns the repository that the file .git of a directory names.
func named(dir string) Found {
	own := filepath.Join(dir, ".git")
	git := lead(dir, ".git", "gitdir: ")
	if common := lead(git, "commondir", ""); common != "" {
		if lead(git, "gitdir", "") == own && filepath.Dir(git) == filepath.Join(common, "worktrees") && Is(common) {
			return Found{Dir: common}
		}
		return Found{}
	}
	settings, ok := configOf(git)
	if git == "" || !ok || !Is(git) {
		return Found{}
	}
	for _, s := range settings {
		if s.Key == "core.worktree" {
			if realFrom(git, s.Value) == dir {
				return Found{Dir: git}
			}
			return Found{}
		}
	}
	return Found{Dir: git, Named: own}
}

// lead returns the path, without links, after a prefix in a small file of a directory; "" if there is none.
func lead(dir, name, prefix string) string {
	raw, err := realpath.ReadSmall(filepath.Join(dir, name), realpath.MaxLength+64)
	path, ok := strings.CutPrefix(strings.TrimSuffix(string(raw), "\n"), prefix)
	if dir == "" || err != nil || !ok || path == "" {
		return ""
	}
	return realFrom(dir, path)
}

// realFrom returns where a path leads from a directory, without links; "" if nothing is there.
func realFrom(dir, path string) string {
	if path = filepath.FromSlash(path); !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	return real
}
