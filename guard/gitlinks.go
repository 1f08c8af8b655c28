package guard

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"toolhost/guard/internal/realpath"
)

const (
	// maxGitIndex is the most that is read of an index, in bytes: that of Linux has 9 MB.
	maxGitIndex = 64 << 20
	// maxGitLinks bounds the submodules of a repository, and maxGitNesting how deep they
	// lie in each other.
	maxGitLinks   = 1000
	maxGitNesting = 8
)

// submodulesArePlain reports whether the repositories that lie in the work tree as
// submodules are plain too: git status and git diff run git in them, which obeys their
// configuration.
func submodulesArePlain(git, work string, depth int) bool {
	if depth > maxGitNesting {
		return false
	}
	links, ok := gitLinks(git)
	return ok && !slices.ContainsFunc(links, func(name string) bool { return !submoduleIsPlain(filepath.Join(work, name), depth+1) })
}

func submoduleIsPlain(work string, depth int) bool {
	git := filepath.Join(work, ".git")
	info, err := os.Lstat(git)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true // not checked out
	case err != nil:
		return false
	case info.IsDir():
		return gitRunsNothing(git, "") && submodulesArePlain(git, work, depth)
	}
	at, ok := pointer(work, ".git", "gitdir: ")
	return ok && gitRunsNothing(at, "worktree") && submodulesArePlain(at, work, depth) // which is how it finds back to its files
}

// gitLinks returns the names of the submodules in the index of a repository. It may
// return names that are none: entries are looked for by their mode, wherever they are.
func gitLinks(git string) (names []string, ok bool) {
	for files := []string{filepath.Join(git, "index")}; len(files) > 0; files = files[1:] {
		raw, err := realpath.ReadSmall(files[0], maxGitIndex)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, false
		}
		if bytes.Contains(raw, []byte("link")) && filepath.Base(files[0]) == "index" { // the extension of one that is split
			shared, _ := filepath.Glob(filepath.Join(quoteGlob(git), "sharedindex.*"))
			files = append(files, shared...)
		}
		for rest := raw; ; {
			_, after, found := bytes.Cut(rest, []byte{0, 0, 0o340, 0}) // 160000
			if !found {
				break
			}
			rest = after
			if len(raw) > 7 && raw[7] == 4 || len(names) > maxGitLinks {
				return nil, false // the fourth version leaves out what names begin with alike
			}
			for _, skip := range []int{34, 36, 46, 48} { // owner, size, hash (of two kinds), flags (one or two)
				if name, _, found := bytes.Cut(after[min(skip, len(after)):], []byte{0}); found && filepath.IsLocal(string(name)) && len(name) < realpath.MaxLength {
					names = append(names, string(name))
				}
			}
		}
	}
	return names, true
}
