// Package gitrepo looks into git repositories without running git: whether git, told only to look, would run some program
// of their maker's, and where their hooks are.
package gitrepo

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"toolhost/guard/internal/realpath"
)

// programs are the words of a git configuration that make git run a program, or
// look somewhere else, even when it only looks: names of settings (git-config(1))
// in lower case. A pager is not among them: there is no terminal.
var programs = []string{
	"fsmonitor", "external", "textconv", "command", "filter", "program", "include", "hookspath",
	"worktree", "partialclone", "promisor", "alternaterefs",
}

// maxConfig is the most that is read of a git configuration, in bytes. Real
// ones have a few KiB.
const maxConfig = 1 << 20

// OnlyLooks reports whether git, told to look at the repository that dir is
// in, runs nothing but itself: neither its configuration nor a hook names a
// program. The configuration does not come with a clone, but with an archive, or
// from whoever could write it before. What cannot be read does not count as
// harmless. Without a repository there is nothing to run.
func OnlyLooks(dir string) bool {
	for {
		git := filepath.Join(dir, ".git")
		if info, err := os.Lstat(git); err == nil {
			return info.IsDir() && isPlain(git) || info.Mode().IsRegular() && worktreeIsPlain(dir)
		} else if !os.IsNotExist(err) {
			return false
		}
		if bare(dir) {
			return isPlain(dir)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}

// bare reports whether git would take dir itself for a repository.
func bare(dir string) bool {
	for _, name := range []string{"HEAD", "objects"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

func isPlain(git string) bool {
	return runsNothing(git, "") && storesHere(git) && submodulesArePlain(git, filepath.Dir(git), 0)
}

// worktreeIsPlain is isPlain for a directory that git worktree made. Its file .git
// may name any repository: it is believed if that knows of this directory.
func worktreeIsPlain(dir string) bool {
	at, ok := pointer(dir, ".git", "gitdir: ")
	common := filepath.Dir(filepath.Dir(at))
	if !ok || filepath.Base(filepath.Dir(at)) != "worktrees" {
		return false
	}
	back, ok := pointer(at, "gitdir", "")
	if !ok || back != filepath.Join(dir, ".git") {
		return false
	}
	to, ok := pointer(at, "commondir", "")
	return ok && to == common && runsNothing(common, "") && storesHere(common) && submodulesArePlain(at, dir, 0)
}

// pointer returns the path that a small file of a directory holds behind a prefix.
func pointer(dir, name, prefix string) (path string, ok bool) {
	raw, err := realpath.ReadSmall(filepath.Join(dir, name), realpath.MaxLength+64)
	path, ok = strings.CutPrefix(strings.TrimSpace(string(raw)), prefix)
	if err != nil || !ok || path == "" {
		return "", false
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return filepath.Clean(path), true
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

// runsNothing reports whether no program is named by what is in a directory of git,
// but for a word of the configuration that is expected there.
func runsNothing(git, expected string) bool {
	// git runs the hook when it refreshes the index, which `git status` does, and with a
	// commondir reads the configuration of another directory.
	for _, name := range []string{"hooks/post-index-change", "commondir"} {
		if _, err := os.Lstat(filepath.Join(git, name)); err == nil {
			return false
		}
	}
	raw, err := realpath.ReadSmall(filepath.Join(git, "config"), maxConfig)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	text := strings.ToLower(string(raw))
	for _, word := range programs {
		if word != expected && strings.Contains(text, word) {
			return false
		}
	}
	return true
}
