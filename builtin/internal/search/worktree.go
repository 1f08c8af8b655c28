package search

import (
	"bytes"
	"path/filepath"
	"strings"

	"github.com/toolhost/toolhost/builtin/internal/search/walk"
)

// linkedExclude reads the excludes of a repository whose .git is a file, as in a linked worktree or a submodule. The
// file names a Git directory; if that has a file commondir, it names the directory of the repository. at is the real
// path of root; dir leads from there to the file, "" or ending in a slash.
func linkedExclude(root *walk.Root, at, dir string) []byte {
	file, _ := readSmall(root, dir+".git", nil)
	named, ok := bytes.CutPrefix(file, []byte("gitdir: "))
	if !ok {
		return nil
	}
	git := from(filepath.Join(at, filepath.FromSlash(dir)), named)
	if common := readIn(git, "commondir"); len(common) > 0 {
		git = from(git, common)
	}
	return readIn(filepath.Join(git, "info"), "exclude")
}

// from returns the path in the first line of file, which lies in dir.
func from(dir string, file []byte) string {
	line, _, _ := strings.Cut(string(file), "\n")
	path := filepath.FromSlash(strings.TrimSuffix(line, "\r"))
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return filepath.Clean(path)
}

// readIn reads a small file in a directory that need not lie below any root.
func readIn(dir, name string) []byte {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil
	}
	root, err := walk.OpenRoot(real)
	if err != nil {
		return nil
	}
	defer root.Close()
	content, _ := readSmall(root, name, nil)
	return content
}
