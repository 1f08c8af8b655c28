package document

import (
	"fmt"
	"os"
)

// cacheDir makes the directory for compiled programs, and returns it if only
// the user can write there.
func cacheDir(dir string) (string, error) {
	if dir == "" {
		return "", nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("the cache of programs could not be made: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", fmt.Errorf("the cache of programs could not be checked: %w", err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s is no directory, and a cache of programs there is not used", dir)
	}
	if err := private(dir, info); err != nil {
		return "", err
	}
	return dir, nil
}
