// Package privatefile writes the small files of the host itself (rules people answered with,
// trust, secrets, records): readable by their owner only, whole or not at all.
//
// A file is written under another name and put in its place by one rename. A writer that is
// killed in between leaves its draft; the next writer in that directory
// removes it, as [sweep] does. Stores of many files lock and make their directories with it.
//
// Its Go API is not stable.
package privatefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// draftPrefix begins the names of drafts.
const draftPrefix = ".new-"

// draftAge is the age from which a draft counts as abandoned: writing takes milliseconds. A writer that was delayed
// for longer fails, without other effects.
const draftAge = time.Minute

// Replace replaces a file by text, whatever the file is, and makes the text durable as far as the file system can.
// After an error the file is unchanged.
func Replace(file string, text []byte) error {
	if err := write(file, text, true, rename); err != nil {
		return err
	}
	// The content is in place in any case, and some file systems cannot sync a directory.
	_ = SyncDir(filepath.Dir(file))
	return nil
}

// ReplaceQuickly is Replace for content that is meaningless after a power failure, such as the record of a running
// process. It does not wait for the disk.
func ReplaceQuickly(file string, text []byte) error { return write(file, text, false, rename) }

// Create creates a file with text. If something has that name, the error is [fs.ErrExist] and nothing has changed. Of
// concurrent callers one succeeds.
func Create(file string, text []byte) error {
	return write(file, text, true, func(draft, file string) error {
		if err := os.Link(draft, file); err != nil {
			return err
		}
		return os.Remove(draft)
	})
}

// rename replaces a file by another. Windows refuses that while a process
// reads the file, which takes less than a millisecond.
func rename(from, to string) (err error) {
	const tries, pause = 10, 10 * time.Millisecond
	for range tries {
		if err = os.Rename(from, to); err == nil || os.PathSeparator == '/' {
			return err
		}
		time.Sleep(pause)
	}
	return err
}

// write writes a draft, and has place put it in place; durable waits for the disk.
func write(file string, text []byte, durable bool, place func(draft, file string) error) (err error) {
	dir := filepath.Dir(file)
	_ = sweep(dir, time.Now())                    // what cannot be removed is found again
	f, err := os.CreateTemp(dir, draftPrefix+"*") // made with mode 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	defer func() {
		if err == nil {
			return
		}
		if gone := os.Remove(f.Name()); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
		err = fmt.Errorf("write %s: %w", file, err)
	}()
	if _, err = f.Write(text); err == nil && durable {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return place(f.Name(), file)
}

// sweep removes the drafts in dir that killed writers have left. An absent directory has none.
func sweep(dir string, now time.Time) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), draftPrefix) || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err == nil && now.Sub(info.ModTime()) > draftAge {
			err = os.Remove(filepath.Join(dir, e.Name()))
		}
		if !errors.Is(err, fs.ErrNotExist) { // another host may sweep too
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
