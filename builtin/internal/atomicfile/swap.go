package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Most programs save a file by a rename, which no lock prevents. A plain rename would replace a file that such a
// program has saved since the file was read. So the names of the old and the new file are exchanged, which shows what
// was replaced: if that is not the file that was read, the names are exchanged again.

// ErrOvertaken reports that another program changed, replaced or removed the file during the call. Its change is kept.
var ErrOvertaken = errors.New("something else changed, replaced or removed it while this call ran; Read it again and " +
	"repeat the call")

// swap exchanges the names of the closed temporary file and the current file. The error is [ErrOvertaken] if the
// current file no longer has its name, or was written by another program; nothing is changed then.
func (r *replacement) swap(t *temp) error {
	var err error
	if r.ours, err = pin(r.dir, r.handle, t.name); err != nil {
		return err
	}
	t.noteSwap(r.base, r.ours.info, r.was, false)
	switch err := exchange(r.handle, t.name, r.base); {
	case errors.Is(err, errors.ErrUnsupported):
		return r.renameOver(t, r.was)
	case errors.Is(err, fs.ErrNotExist):
		return ErrOvertaken
	case err != nil:
		return err
	}
	r.exchanged = t
	if out, err := r.dir.Lstat(t.name); err != nil || !os.SameFile(out, r.was) {
		_, err := r.putBack()
		return errors.Join(ErrOvertaken, err)
	}
	if r.hold.holds() {
		return nil
	}
	if err := r.Expect(r.current); err != nil {
		_, back := r.putBack()
		return errors.Join(err, back)
	}
	return nil
}

// putBack exchanges the names again. If another program has saved a file in the place of the new one meanwhile, the
// exchange shows that: this file is the latest and keeps the name, and stands is false.
func (r *replacement) putBack() (stands bool, err error) {
	t, placed := r.exchanged, r.ours
	r.exchanged = nil
	for stands = true; ; stands = !stands {
		back, err := pin(r.dir, r.handle, t.name) // so that its inode number is not used again
		if err != nil {
			return false, t.leave(err)
		}
		defer back.release()
		t.noteSwap(r.base, back.info, placed.info, true)
		err = exchange(r.handle, t.name, r.base)
		if errors.Is(err, fs.ErrNotExist) { // another program removed it
			if err = renameNew(r.handle, t.name, r.base); errors.Is(err, fs.ErrExist) {
				stands = !stands
				continue
			}
			t.gone = err == nil
		}
		if err != nil {
			return false, t.leave(err)
		}
		if t.gone {
			return stands, nil
		}
		out, err := r.dir.Lstat(t.name)
		if err != nil {
			return false, t.leave(err)
		}
		if os.SameFile(out, placed.info) {
			return stands, nil
		}
		placed = back
	}
}

// renameOver renames the closed temporary file over a file, if names cannot be exchanged. What another program saves
// between the check and the rename is lost.
func (r *replacement) renameOver(t *temp, old fs.FileInfo) error {
	if now, err := r.dir.Lstat(r.base); err != nil || !os.SameFile(now, old) {
		return ErrOvertaken
	}
	if openInTheWay {
		r.current.Close() // it is not read any more
	}
	if err := renameIn(r.dir, t.name, r.base); err != nil {
		return err
	}
	t.gone = true
	return nil
}

// isNamed reports whether a file still has the name.
func (r *replacement) isNamed(info fs.FileInfo) bool {
	now, err := r.dir.Lstat(r.base)
	return err == nil && os.SameFile(now, info)
}

// Remove removes the file base of dir, as [Replace] replaces one. It is not an error if the file does not exist.
func Remove(dir *os.Root, base string, o Options) error {
	r, err := begin(dir, base, o)
	if err != nil {
		return err
	}
	defer r.release()
	if r.current == nil {
		return nil
	}
	defer r.current.Close()
	r.hold = holdFile(r.current)
	defer r.hold.release()
	if err := r.Expect(r.current); err != nil {
		return err
	}
	if err := r.takeAway(); err != nil {
		return r.failed("remove", err)
	}
	return r.syncDir()
}

// takeAway gives the current file a temporary name, so that a file of another program is detected and put back.
func (r *replacement) takeAway() error {
	t := r.newTemp()
	defer t.discard()
	t.noteSwap(r.base, nil, r.was, false)
	switch err := renameNew(r.handle, r.base, t.name); {
	case errors.Is(err, errors.ErrUnsupported):
		if !r.isNamed(r.was) {
			return ErrOvertaken
		}
		return r.dir.Remove(r.base)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	t.gone = false
	out, err := r.dir.Lstat(t.name)
	if err == nil && os.SameFile(out, r.was) {
		if err = r.undisturbed(); err == nil {
			return nil
		}
	} else {
		err = ErrOvertaken
	}
	if back := renameNew(r.handle, t.name, r.base); errors.Is(back, fs.ErrExist) {
		return err // another file has taken the place of this one again
	} else if back != nil {
		return errors.Join(err, t.leave(back))
	}
	t.gone = true
	return err
}

// leave keeps the file under the temporary name: it belongs to another program, and could not be put back. [Recover]
// tries again.
func (t *temp) leave(cause error) error {
	t.gone, t.temps = true, nil
	t.intent.abandon()
	t.intent = nil
	return fmt.Errorf("what another program put in its place could not be put back (%w) and is kept as %s",
		unwrapPath(cause), filepath.Join(t.handle.Name(), t.name))
}

// A pinned file is not freed, and its inode number not used again, until it is released.
type pinned struct {
	info fs.FileInfo
	file *os.File // nil where nothing keeps it
}

func (p pinned) release() {
	if p.file != nil {
		p.file.Close()
	}
}
