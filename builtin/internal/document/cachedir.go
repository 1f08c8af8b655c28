package document

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/toolhost/toolhost/guard/statedir"
)

// staleAge is how old a half-written file must be to be removed: no worker lives
// so long.
const staleAge = time.Hour

// cacheDir makes the directory for compiled programs, and returns it if only
// the user can write there.
func cacheDir(dir string) (string, error) {
	if dir == "" {
		return "", nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("the cache of programs could not be made: %w", err)
	}
	if err := statedir.Check(dir); err != nil {
		return "", fmt.Errorf("a cache of programs is not used: %w", err)
	}
	removeStale(dir)
	return dir, nil
}

// removeStale removes what workers that were killed while they wrote have left:
// files of 20 MB, named so by wazero. One that cannot be removed does no harm.
func removeStale(dir string) {
	left, err := filepath.Glob(filepath.Join(dir, "*", "*.tmp"))
	if err != nil {
		return // dir has characters that mean something to Glob
	}
	for _, name := range left {
		if info, err := os.Lstat(name); err == nil && time.Since(info.ModTime()) > staleAge {
			os.Remove(name)
		}
	}
}
