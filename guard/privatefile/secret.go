package privatefile

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// secretSize is the length of a secret, in bytes.
const secretSize = 32

// Secret returns the secret of this name in dir, made on first use and readable by its owner only.
// It always returns a secret; with an error, one that only this process has. Several processes may call it at once:
// the first to link its file wins, and none reads half a secret.
func Secret(dir, name string) ([]byte, error) {
	fresh := make([]byte, secretSize)
	_, _ = rand.Read(fresh) // crypto/rand never fails
	if dir == "" {
		return fresh, errors.New("there is no state directory to keep a secret in")
	}
	_ = sweep(dir, time.Now()) // what cannot be removed is found at the next start
	path := filepath.Join(dir, name)
	kept, err := readSecret(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = Create(path, fresh); err == nil {
			return fresh, nil
		}
		if errors.Is(err, fs.ErrExist) {
			kept, err = readSecret(path)
		}
	}
	if err != nil {
		return fresh, fmt.Errorf("the secret %s: %w", path, err)
	}
	return kept, nil
}

// readSecret reads a file with the length of a secret.
func readSecret(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() != secretSize {
		return nil, fmt.Errorf("it has %d bytes, %d are expected: delete it to make a new one", info.Size(), secretSize)
	}
	secret := make([]byte, secretSize)
	if _, err = io.ReadFull(f, secret); err == nil && bytes.Count(secret, secret[:1]) == secretSize {
		err = errors.New("all its bytes are the same, as in what a crash leaves: delete it to make a new one")
	}
	return secret, err
}

// Size returns the size of the regular files below a directory. Files that cannot be read do not count.
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
