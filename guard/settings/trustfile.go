package settings

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// CheckFiles compares the files that a command line of the host names with the content that a person agreed to, and
// returns those that are new or have changed. The files of a command line that is seen for the first time are agreed
// to, unless they are known with other content.
func CheckFiles(cfg Config, line string, files []string) (changed []string, err error) {
	now := map[string]string{}
	for _, file := range files {
		if now[file], err = fileDigest(file); err != nil {
			return nil, err
		}
	}
	sum := sha256.Sum256([]byte(line))
	line = hex.EncodeToString(sum[:])
	store, err := readTrust(cfg, readRegular)
	if err != nil {
		return nil, err
	}
	if changed, news := store.compare(line, now); len(changed) > 0 || !news {
		return changed, nil
	}
	err = editFiles(cfg, func(store *trustStore) {
		var news bool
		if changed, news = store.compare(line, now); len(changed) > 0 || !news {
			return
		}
		maps.Copy(store.Files, now)
		store.Lines[line] = time.Now().UTC().Truncate(time.Second)
	})
	if len(files) == 0 {
		return nil, nil // no agreement is needed, so a failure to save is harmless
	}
	return changed, err
}

// compare returns the files that a person must agree to, and whether the line or a file is not in the store yet.
func (t *trustStore) compare(line string, now map[string]string) (changed []string, news bool) {
	_, seen := t.Lines[line]
	for _, file := range slices.Sorted(maps.Keys(now)) {
		switch was, known := t.Files[file]; {
		case was == now[file]:
		case seen || known:
			changed = append(changed, file)
		}
	}
	return changed, !seen
}

// editFiles changes the agreed files.
func editFiles(cfg Config, edit func(*trustStore)) error {
	return editTrust(cfg, func(store *trustStore) error {
		if store.Files == nil {
			store.Files = map[string]string{}
		}
		if store.Lines == nil {
			store.Lines = map[string]time.Time{}
		}
		edit(store)
		return nil
	})
}

// fileDigest identifies the target of a name and its content.
func fileDigest(name string) (string, error) {
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return "", err
	}
	f, err := os.Open(real)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", name)
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%d:%s\n", len(real), real)
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// InspectFile is [Inspect] for a file that a command line of the host names.
func InspectFile(cfg Config, file string) (*review, error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	digest, err := fileDigest(file)
	if err != nil {
		return nil, fmt.Errorf("file %s: %w", file, err)
	}
	return &review{Root: file, File: true, Digest: digest, cfg: cfg}, nil
}

// trustFile agrees to the file that was read.
func (r *review) trustFile() error {
	return editFiles(r.cfg, func(store *trustStore) { store.Files[r.Root] = r.Digest })
}
