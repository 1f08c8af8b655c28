package document

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/toolhost/toolhost/guard/statedir"
)

// staleAge is how old an incomplete file must be to be removed: no worker runs that long.
const staleAge = time.Hour

// cacheDir creates the directory for compiled programs, and returns it if only the user can write to it.
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

// removeStale removes the incomplete files of workers that were killed while they wrote: 20 MB each, named *.tmp by
// wazero. A file that cannot be removed does no harm.
func removeStale(dir string) {
	left, err := filepath.Glob(filepath.Join(dir, "*", "*.tmp"))
	if err != nil {
		return // dir contains characters that are special to Glob
	}
	for _, name := range left {
		if info, err := os.Lstat(name); err == nil && time.Since(info.ModTime()) > staleAge {
			os.Remove(name)
		}
	}
}
