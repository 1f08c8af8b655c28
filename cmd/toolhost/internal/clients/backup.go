package clients

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// maxBackups is how many previous versions of one file are kept.
const maxBackups = 10

// Backups keeps what edits replaced, in a directory that only its owner can read.
type Backups struct {
	// Dir is created with the first backup.
	Dir string
}

// backupTime begins the name of a backup, so that names sort by age.
const backupTime = "20060102T150405.000000000Z"

// absentMark is the end of the name of a backup that says that there was no file.
const absentMark = ".absent"

// of returns the directory for the backups of one file.
func (b Backups) of(file string) string {
	sum := sha256.Sum256([]byte(file))
	return filepath.Join(b.Dir, filepath.Base(file)+"-"+hex.EncodeToString(sum[:4]))
}

// save keeps what a file held before content is written. The name of the backup contains the digest of content.
func (b Backups) save(before target, content []byte) (string, error) {
	dir := b.of(before.path)
	if err := os.MkdirAll(dir, newDirMode); err != nil {
		return "", fmt.Errorf("making a backup: %w", err)
	}
	at, err := newest(dir, time.Now().UTC())
	if err != nil {
		return "", fmt.Errorf("making a backup: %w", err)
	}
	name := filepath.Join(dir, at.Format(backupTime)+"-"+digest(content))
	if !before.exists {
		name += absentMark
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, newFileMode)
	if err != nil {
		return "", fmt.Errorf("making a backup: %w", err)
	}
	if err := writeAll(f, before.raw, newFileMode); err != nil {
		return "", fmt.Errorf("making a backup: %w", errors.Join(err, ignoreClosed(f.Close()), os.Remove(name)))
	}
	return name, b.prune(dir)
}

// newest returns a time for a backup that is later than all others: now, unless the clock has stood still or was set
// back.
func newest(dir string, now time.Time) (time.Time, error) {
	names, err := list(dir)
	if err != nil || len(names) == 0 {
		return now, err
	}
	last, err := time.Parse(backupTime, names[0][:len(backupTime)])
	if err != nil || now.After(last) {
		return now, nil // an error: not one of our names
	}
	return last.Add(1), nil
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// list returns the names of the backups in a directory, newest first.
func list(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		if len(e.Name()) > len(backupTime) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	slices.Reverse(names)
	return names, err
}

func (b Backups) prune(dir string) error {
	names, err := list(dir)
	for _, name := range names[min(maxBackups, len(names)):] {
		err = errors.Join(err, os.Remove(filepath.Join(dir, name)))
	}
	return err
}

// before goes back through the edits that led to the present content of a file. It returns the first version for
// which good returns true; if good is nil, the oldest version. found is false if there is none, because something
// else has changed the file.
func (b Backups) before(now target, good func(raw []byte) bool) (version target, found bool, err error) {
	dir := b.of(now.path)
	names, err := list(dir)
	if err != nil {
		return target{}, false, err
	}
	content := digest(now.raw)
	for _, name := range names {
		_, rest, _ := strings.Cut(name, "-")
		after, absent := strings.CutSuffix(rest, absentMark)
		if after != content {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return target{}, false, err
		}
		version, found = target{path: now.path, exists: !absent, raw: raw}, good == nil
		if absent || good != nil && good(raw) {
			return version, true, nil
		}
		content = digest(raw)
	}
	return version, found, nil
}
