// Package gitrepo inspects git repositories without running git: where the repository of a directory is, its settings,
// and where its hooks are.
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

const (
	// maxHead is the most that is read of a HEAD, in bytes. It holds one name.
	maxHead = 4096
	// maxConfig is the most that is read of a git configuration, in bytes. Real ones have a few KiB.
	maxConfig = 1 << 20
)

// Is reports whether git takes a directory for that of a whole repository.
func Is(git string) bool {
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

// found reports whether a directory may have an entry.
func found(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return !errors.Is(err, fs.ErrNotExist)
}

// configOf returns the settings of a directory of git. The second file counts
// only if an extension is on; it is read in any case. What is not understood is
// not ok.
func configOf(git string) (settings []Setting, ok bool) {
	for _, name := range []string{"config", "config.worktree"} {
		raw, err := realpath.ReadSmall(filepath.Join(git, name), maxConfig)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, false
		}
		list, err := Parse(raw)
		if err != nil {
			return nil, false
		}
		settings = append(settings, list...)
	}
	return settings, true
}
