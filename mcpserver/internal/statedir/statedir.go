// Package statedir makes the directory ready in which hosts and the command line keep what outlives them, and keeps secrets there.
package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/privatefile"
)

// stateNames begin the names of what is kept there.
var stateNames = []string{
	"audit.jsonl", "baseline", "cache", "console", "history", "install", "journal", "readstate", "results", "search", "secret", "token", "trust.json",
}

// Open makes the state directory ready. The error says why nothing in it can be believed: whoever wrote it could choose what
// an undo and the recovery of a torn file write, which workspaces are trusted, and who may call.
func Open(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !slices.ContainsFunc(stateNames, func(name string) bool { return strings.HasPrefix(e.Name(), name) }) {
			continue // a directory may be shared with something else
		}
		if err := checkState(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// checkState finds what another user has put there, and what a host would wait for.
func checkState(path string) error {
	for _, look := range []func(string) (fs.FileInfo, error){os.Lstat, os.Stat} { // a link, and what it leads to
		info, err := look(path)
		if err != nil {
			return err
		}
		if !privatefile.Ours(info) {
			return fmt.Errorf("%s belongs to another user, who could decide there what this host does: give --state-dir a directory of your own, or remove it", path)
		}
		if t := info.Mode().Type(); t&^(fs.ModeDir|fs.ModeSymlink) != 0 {
			return fmt.Errorf("%s is neither a file nor a directory (%v): remove it", path, info.Mode())
		}
	}
	return nil
}

// Size adds up the regular files below a directory. What cannot be read does not count.
func Size(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				bytes += info.Size()
			}
		}
		return nil
	})
	return bytes
}
