package gitrepo

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/realpath"
)

const (
	// maxIndex is the most that is read of an index, in bytes: that of Linux has 9 MB.
	maxIndex = 64 << 20
	// maxSubmodules bounds the submodules of a repository, and maxNesting how deep they
	// lie in each other.
	maxSubmodules = 1000
	maxNesting    = 8
)

// submodulesArePlain reports whether the repositories that lie in the work tree as
// submodules are plain too: git status and git diff run git in them, which obeys their
// configuration.
func submodulesArePlain(git, work string, depth int) bool {
	if depth > maxNesting {
		return false
	}
	names, ok := submodules(git)
	return ok && !slices.ContainsFunc(names, func(name string) bool { return !submoduleIsPlain(filepath.Join(work, name), depth+1) })
}

// submoduleIsPlain judges the repository at work/.git, the only place where git looks for that of a
// submodule.
func submoduleIsPlain(work string, depth int) bool {
	git := filepath.Join(work, ".git")
	info, err := os.Lstat(git)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true // not checked out
	case err != nil:
		return false
	case !info.IsDir():
		var ok bool
		if git, ok = pointer(work, ".git", "gitdir: "); !ok {
			return false
		}
	}
	return holds(git) && runsNothing(git, work) && submodulesArePlain(git, work, depth)
}

// submodules returns the names of the submodules in the index of a repository. It may return other
// names too: it searches for the mode of entries, at any offset.
func submodules(git string) (names []string, ok bool) {
	for files := []string{filepath.Join(git, "index")}; len(files) > 0; files = files[1:] {
		raw, err := realpath.ReadSmall(files[0], maxIndex)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, false
		}
		if bytes.Contains(raw, []byte("link")) && filepath.Base(files[0]) == "index" { // the extension of one that is split
			files = append(files, sharedIndexes(git)...)
		}
		for rest := raw; ; {
			_, after, found := bytes.Cut(rest, []byte{0, 0, 0o340, 0}) // 160000
			if !found {
				break
			}
			rest = after
			if len(raw) > 7 && raw[7] == 4 || len(names) > maxSubmodules {
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

// sharedIndexes returns what an index that is split may build on.
func sharedIndexes(git string) (files []string) {
	entries, _ := os.ReadDir(git)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "sharedindex.") {
			files = append(files, filepath.Join(git, e.Name()))
		}
	}
	return files
}
