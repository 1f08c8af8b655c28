package mcpserver

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

// stateNames are the name prefixes of the entries of a state directory.
var stateNames = []string{
	"audit.jsonl", "baseline", "cache", "checkpoints", "console", "history", "hooks.json", "hosts", "install", "journal", "modes.json", "overlays", "ports",
	"private", "readstate", "results", "run", "search", "secret", "servers", "settle", "token", "trust.json", "worktrees",
}

// openStateDir prepares the state directory. It returns an error if the content cannot be trusted: the content
// decides what an undo and the recovery of a torn file write, which workspaces are trusted, and which callers are
// accepted.
func openStateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return CheckStateDir(dir)
}

// CheckStateDir returns an error if the content of a state directory cannot be trusted. The directory need not exist.
func CheckStateDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if !slices.ContainsFunc(stateNames, func(name string) bool { return strings.HasPrefix(e.Name(), name) }) {
			continue // the directory may be shared with another program
		}
		if err := checkState(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// checkState refuses an entry that another user created, or that would block a host.
func checkState(path string) error {
	for _, look := range []func(string) (fs.FileInfo, error){os.Lstat, os.Stat} { // the link itself, and its target
		info, err := look(path)
		if err != nil {
			return err
		}
		if !privatefile.Ours(info) {
			return fmt.Errorf("%s belongs to another user, which could control this host: remove it, or set --state-dir to a "+
				"directory of your own", path)
		}
		if t := info.Mode().Type(); t&^(fs.ModeDir|fs.ModeSymlink) != 0 {
			return fmt.Errorf("%s is neither a file nor a directory (%v): remove it", path, info.Mode())
		}
	}
	return nil
}
