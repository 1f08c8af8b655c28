// Package gitrepo inspects git repositories without running git: whether a git command that only reads would run a
// program that the repository names, and where its hooks are.
package gitrepo

import (
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/realpath"
)

// A Kind classifies what git finds when it starts in a directory. The zero Kind must be refused.
type Kind int

// The kinds of places.
const (
	Unusual  Kind = iota // git may run a program there, or use what git itself does not make
	None                 // no repository
	WorkTree             // a work tree whose repository makes git run nothing but itself
	Bare                 // a repository without a work tree, of which the same is true
)

// maxHead is the most that is read of a HEAD, in bytes. It holds one name.
const maxHead = 4096

// At returns what git finds when it starts in dir, a real path. It searches as
// git does: .git in each directory from dir up, then the directory itself as a
// bare repository. It is stricter than git about what a repository is, so that
// git uses the one that was inspected; anything in between is Unusual.
func At(dir string) Kind {
	for {
		if kind := here(dir); kind != None {
			return kind
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return None
		}
		dir = parent
	}
}

// here is At without the directories above.
func here(dir string) Kind {
	git := filepath.Join(dir, ".git")
	info, err := os.Lstat(git)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return bare(dir)
	case err == nil && info.IsDir() && !found(git, "HEAD"): // git passes over it
		if bare(dir) == None {
			return None
		}
	case err == nil && info.IsDir() && holds(git) && plain(git, git, dir):
		return WorkTree
	case err == nil && info.Mode().IsRegular() && linked(dir):
		return WorkTree
	}
	return Unusual
}

// found reports whether a directory may have an entry.
func found(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return !errors.Is(err, fs.ErrNotExist)
}

// bare judges a directory without .git. Git treats it as a repository if it has HEAD, refs and objects; the last
// two may lie elsewhere.
func bare(dir string) Kind {
	switch {
	case !found(dir, "HEAD") || !found(dir, "refs") && !found(dir, "commondir"):
		return None
	case holds(dir) && plain(dir, dir, ""):
		return Bare
	}
	return Unusual
}

// linked judges a directory whose .git is a file: a work tree of git worktree,
// or a submodule. The file may name any repository; it counts if that one names
// the directory in turn.
func linked(dir string) bool {
	git, ok := pointer(dir, ".git", "gitdir: ")
	if !ok {
		return false
	}
	if filepath.Base(filepath.Dir(git)) != "worktrees" {
		settings, ok := configOf(git)
		return ok && namesWorkTree(settings) && holds(git) && plain(git, git, dir)
	}
	back, ok := pointer(git, "gitdir", "")
	if !ok || back != filepath.Join(dir, ".git") {
		return false
	}
	common, ok := pointer(git, "commondir", "")
	return ok && common == filepath.Dir(filepath.Dir(git)) && hasHead(git) && holds(common) && plain(git, common, dir)
}

// holds reports whether git takes a directory for a whole repository.
func holds(git string) bool {
	for _, name := range []string{"refs", "objects"} {
		info, err := os.Lstat(filepath.Join(git, name))
		if err != nil || !info.IsDir() || info.Mode()&0o100 == 0 {
			return false
		}
	}
	return !found(git, "commondir") && hasHead(git)
}

// hasHead reports whether HEAD is a file that git accepts.
func hasHead(git string) bool {
	name := filepath.Join(git, "HEAD")
	info, err := os.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	raw, err := realpath.ReadSmall(name, maxHead)
	if err != nil {
		return false
	}
	text := strings.TrimSuffix(string(raw), "\n")
	_, err = hex.DecodeString(text)
	return strings.HasPrefix(text, "ref: refs/") || err == nil && (len(text) == 40 || len(text) == 64)
}

// plain reports whether git, when it only reads, runs nothing but itself: no
// setting or hook in its directory, which is git, and in the one that it shares
// with other work trees names a program, and neither do its submodules. The
// work tree is at work, "" without one.
func plain(git, common, work string) bool {
	return runsNothing(git, work) && (common == git || runsNothing(common, work)) && storesHere(common) && (work == "" || submodulesArePlain(git, work, 0))
}

// pointer returns the path after a prefix in a small file of a directory, a real path. A path that git itself
// would not write is not ok: its lexical meaning could differ from the system's.
func pointer(dir, name, prefix string) (path string, ok bool) {
	raw, err := realpath.ReadSmall(filepath.Join(dir, name), realpath.MaxLength+64)
	path, ok = strings.CutPrefix(strings.TrimSuffix(string(raw), "\n"), prefix)
	if err != nil || !ok || path == "" {
		return "", false
	}
	return follow(dir, path)
}

// follow returns where a path that git has written leads from dir. It must be
// clean and lead through no link.
func follow(dir, path string) (string, bool) {
	path = filepath.FromSlash(path)
	if path != filepath.Clean(path) || strings.ContainsAny(path, "\x00\n\r") {
		return "", false
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	real, err := filepath.EvalSymlinks(path)
	return path, err == nil && real == path
}

// storesHere reports whether git finds the objects and names of a repository in its own
// directory: not in the store of another one, which could lie where Read may not look.
func storesHere(git string) bool {
	for _, dir := range []string{"", "objects", "objects/info", "objects/pack", "refs", "refs/heads", "logs", "logs/refs", "info"} {
		entries, err := os.ReadDir(filepath.Join(git, dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false
		}
		for _, e := range entries {
			if e.Type()&fs.ModeSymlink != 0 || dir == "objects/info" && strings.HasSuffix(e.Name(), "alternates") {
				return false
			}
		}
	}
	return true
}
