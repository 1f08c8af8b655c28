package atomicfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Report describes what [Recover] did.
type Report struct {
	Removed  []string // temporary files of processes that died
	Restored []string // files that were torn or exchanged, and have their content of before again

	// Saved has, for each file that was torn or exchanged and then changed by another program, the path at which its old
	// content was saved. Those files were not changed.
	Saved map[string]string
}

// Recover handles the entries of processes that died: it removes their temporary files, and restores files that were
// torn while written in place. A journal that does not exist is empty. Entries of living processes are skipped.
// Entries whose recovery fails stay; the error names all of them.
func Recover(ctx context.Context, journalDir string) (Report, error) {
	var report Report
	list, err := os.ReadDir(journalDir)
	if errors.Is(err, fs.ErrNotExist) {
		return report, nil
	}
	if err != nil {
		return report, fmt.Errorf("read the journal: %w", err)
	}
	var errs []error
	for _, item := range list {
		if !strings.HasSuffix(item.Name(), entrySuffix) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return report, errors.Join(append(errs, err)...)
		}
		path := filepath.Join(journalDir, item.Name())
		if err := report.recoverEntry(ctx, path); err != nil {
			errs = append(errs, fmt.Errorf("journal entry %s: %w", path, err))
		}
	}
	return report, errors.Join(errs...)
}

// Torn reports whether a file may be torn: it was being written in place, and neither its writer nor [Recover] has
// completed that. Recover skips an entry whose writer seems to be alive: a child that was started just before the
// writer was killed holds the writer's locks for a moment longer.
func Torn(journalDir, path string) bool {
	list, _ := os.ReadDir(journalDir) // what is not there, or not ours, tells of no file
	return slices.ContainsFunc(list, func(item fs.DirEntry) bool {
		if !strings.HasSuffix(item.Name(), entrySuffix) {
			return false
		}
		f, err := os.OpenFile(filepath.Join(journalDir, item.Name()), os.O_RDONLY|openFlags, 0)
		if err != nil {
			return false
		}
		defer f.Close()
		raw, _ := io.ReadAll(io.LimitReader(f, int64(len(magic)+4+maxHeaderLen)))
		h, _, err := parseHeader(raw)
		return err == nil && h.InPlace && filepath.Join(h.Dir, h.Base) == path
	})
}

// recoverEntry handles one entry and removes it.
func (r *Report) recoverEntry(ctx context.Context, path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|openFlags, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // its owner is done
	}
	if err != nil {
		return err
	}
	e := &entry{path: path, file: f}
	defer e.abandon()
	if busy, err := tryLock(f); err != nil || busy {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !isAt(f, path) {
		return nil // its owner is done
	}
	if !info.Mode().IsRegular() || ownedByOther(info) {
		return errors.New("others can write it, so it is not trusted; remove it by hand")
	}
	h, old, new, err := e.read()
	switch {
	case errors.Is(err, errIncomplete):
	case err != nil:
		return err
	case h.InPlace:
		err = r.recoverInPlace(ctx, h, old, new, strings.TrimSuffix(path, entrySuffix)+savedSuffix)
	default:
		err = r.removeTemp(ctx, h, strings.TrimSuffix(path, entrySuffix)+savedSuffix)
	}
	if err != nil && !errors.Is(err, errIncomplete) {
		return err
	}
	e.done()
	return nil
}

// removeTemp removes a temporary file. Because its name is random, no other file can have the name, even if the
// directory was moved. There is one exception: the file that came out of an exchange may be one that another program
// had saved under the target's name. It is not removed.
func (r *Report) removeTemp(ctx context.Context, h header, saved string) error {
	if !strings.HasPrefix(h.Base, tempPrefix) || !strings.HasSuffix(h.Base, tempSuffix) {
		return fmt.Errorf("%q is not the name of a temporary file", h.Base)
	}
	dir, err := os.OpenRoot(h.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	info, err := dir.Lstat(h.Base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, ino := identity(info); h.Target != "" && ino != h.Ino {
		switch {
		case ino != h.NewIno: // another program's file came out of the exchange
			return r.restoreName(ctx, dir, h, h.NewIno, saved)
		case h.Back: // the exchange back has not happened
			return r.restoreName(ctx, dir, h, h.Ino, saved)
		}
	}
	if err := dir.Remove(h.Base); err != nil {
		return err
	}
	r.Removed = append(r.Removed, filepath.Join(h.Dir, h.Base))
	return nil
}

// restoreName gives a file of another program its name back, after a kill between an exchange and the exchange back.
// If another file has the name by now, the file is saved instead.
func (r *Report) restoreName(ctx context.Context, dir *os.Root, h header, placed uint64, saved string) error {
	var locks Locks
	unlock, err := locks.Lock(ctx, dir, 0)
	if err != nil {
		return err
	}
	defer unlock()
	handle, err := openHandle(dir)
	if err != nil {
		return err
	}
	defer handle.Close()
	name := filepath.Join(h.Dir, h.Target)
	back := replacement{dir: dir, handle: handle, base: h.Target,
		exchanged: &temp{dir: dir, handle: handle, name: h.Base}}
	back.ours, err = pin(dir, handle, h.Target)
	defer back.ours.release()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.Restored = append(r.Restored, name)
		return renameNew(handle, h.Base, h.Target)
	case err != nil:
		return err
	}
	if _, ino := identity(back.ours.info); ino == placed && placed != 0 {
		r.Restored = append(r.Restored, name)
		if _, err := back.putBack(); err != nil {
			return err
		}
	} else if err := r.saveNamed(dir, h.Base, name, saved); err != nil {
		return err
	}
	if err := dir.Remove(h.Base); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// saveNamed saves the file with a temporary name.
func (r *Report) saveNamed(dir *os.Root, base, name, saved string) error {
	if info, err := dir.Lstat(base); err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, fmt.Errorf("%s in %s is not a regular file: another program had put it in the place of %s",
			base, dir.Name(), name))
	}
	content, err := dir.ReadFile(base)
	if err != nil {
		return err
	}
	return r.save(name, saved, content, nil)
}

// recoverInPlace restores a file whose content is a mixture of old and new content.
func (r *Report) recoverInPlace(ctx context.Context, h header, old, new []byte, saved string) error {
	name := filepath.Join(h.Dir, h.Base)
	dir, err := os.OpenRoot(h.Dir)
	if err != nil {
		return r.save(name, saved, old, err)
	}
	defer dir.Close()
	var locks Locks
	unlock, err := locks.Lock(ctx, dir, 0)
	if err != nil {
		return err
	}
	defer unlock()
	f, err := dir.OpenFile(h.Base, os.O_RDWR|openFlags, 0)
	if err != nil {
		return r.save(name, saved, old, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if _, ino := identity(info); ino != h.Ino || !info.Mode().IsRegular() {
		return r.save(name, saved, old, nil)
	}
	current, err := io.ReadAll(io.LimitReader(f, max(h.OldSize, h.NewSize)+1))
	switch {
	case err != nil:
		return err
	case bytes.Equal(current, old), bytes.Equal(current, new):
		return nil
	case !mixesContents(current, old, new):
		return r.save(name, saved, old, nil)
	}
	if err := overwrite(f, int64(len(current)), old); err != nil {
		return err
	}
	if err := f.Chmod(h.Mode); err != nil {
		return err
	}
	r.Restored = append(r.Restored, name)
	return nil
}

// save puts the old content of a file that cannot be restored next to the journal. A file that does not exist (cause
// is fs.ErrNotExist) was removed by a person after the crash; its content is saved nevertheless.
func (r *Report) save(name, path string, old []byte, cause error) error {
	if cause != nil && !errors.Is(cause, fs.ErrNotExist) {
		return cause
	}
	if err := os.WriteFile(path, old, ownerFile); err != nil {
		return err
	}
	if r.Saved == nil {
		r.Saved = make(map[string]string)
	}
	r.Saved[name] = path
	return nil
}

// mixesContents reports whether an interrupted write of new over old can have left current: each byte is from one of
// them, or is zero in a block after the old end that was allocated and not yet written.
func mixesContents(current, old, new []byte) bool {
	if len(current) > max(len(old), len(new)) {
		return false
	}
	for i, c := range current {
		fromOld := i < len(old) && c == old[i]
		fromNew := i < len(new) && c == new[i]
		hole := i >= len(old) && c == 0
		if !fromOld && !fromNew && !hole {
			return false
		}
	}
	return true
}
