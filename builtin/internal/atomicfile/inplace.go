package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// ErrTorn is the error of a write in place that failed and could not be
// undone. The file may hold parts of both contents until [Recover] has run.
var ErrTorn = errors.New("the file may hold parts of its old and new content")

// ErrNoJournal is the error of a write in place that was not begun, because its content could not be saved first.
var ErrNoJournal = errors.New("its content could not be saved in the journal first")

// inPlace writes the content into the existing file. Old and new content are
// in the journal before the first byte changes, and leave it when the new
// content is durable. The file can be torn only in between.
func (r *replacement) inPlace(why string) (Outcome, error) {
	if r.JournalDir == "" {
		return Outcome{}, r.failed("write", fmt.Errorf("%s, so it must be written in place, and there is no journal to do "+
			"that safely", why))
	}
	r.hold.release() // it would keep us away as well
	f, err := r.open(os.O_RDWR)
	if err != nil {
		return Outcome{}, r.failed("write", fmt.Errorf("%s, so it must be written in place: %w", why, unwrapPath(err)))
	}
	defer f.Close()
	h, old, err := r.saveState(f)
	if err != nil {
		return Outcome{}, r.failed("write", err)
	}
	e, err := recordInPlace(r.JournalDir, h, old, r.content)
	if err != nil {
		return Outcome{}, r.failed("write", fmt.Errorf("%w (%s): %w", ErrNoJournal, r.JournalDir, unwrapPath(err)))
	}
	if err := r.makeRoom(f, int64(len(old))); err != nil {
		e.done()
		return Outcome{}, err
	}
	err = overwrite(f, int64(len(old)), r.content...)
	if err == nil && !r.isNamed(r.was) {
		err = ErrOvertaken // what has the name now has not the new content
	}
	if err != nil {
		if undo := overwrite(f, sizeOf(r.content), old); undo != nil {
			e.abandon()
			return Outcome{}, fmt.Errorf("write %s: %w. Its old content could not be put back (%v): %w. Both are kept in the "+
				"journal (%s), and the next start of toolhost makes the file whole",
				r.path(), unwrapPath(err), unwrapPath(undo), ErrTorn, e.path)
		}
		r.attrs.restore(f)
		e.done()
		return Outcome{}, r.failed("write", err)
	}
	r.attrs.restore(f)
	e.done()
	return Outcome{InPlace: true, Why: why}, nil
}

// makeRoom reserves room for the content, and verifies that no other program has written to the file while the
// journal was written.
func (r *replacement) makeRoom(f *os.File, size int64) error {
	if err := r.Expect(f); err != nil { // before the time of the file changes
		return err
	}
	if !r.isNamed(r.was) {
		return r.failed("write", ErrOvertaken)
	}
	if err := reserve(f, sizeOf(r.content)); err != nil {
		// Free the space reserved after the end, unless others write: the end could then move before the call.
		if info, statErr := f.Stat(); statErr == nil && !r.hold.busy {
			_ = f.Truncate(info.Size())
		}
		return r.failed("write", err)
	}
	if info, err := f.Stat(); err != nil || info.Size() != size {
		return r.failed("write", errors.Join(err, errors.New("another program wrote it while this call ran; Read it again "+
			"and repeat the call")))
	}
	return nil
}

// saveState returns what the journal must record of the open file.
func (r *replacement) saveState(f *os.File) (header, []byte, error) {
	info, err := f.Stat()
	if err != nil {
		return header{}, nil, err
	}
	if !os.SameFile(r.was, info) {
		return header{}, nil, ErrOvertaken
	}
	old := make([]byte, info.Size())
	n, err := f.ReadAt(old, 0)
	if err != nil && err != io.EOF {
		return header{}, nil, err
	}
	old = old[:n]
	h := header{Dir: r.dirPath(), Base: r.base, Mode: info.Mode() &^ setID}
	h.Dev, h.Ino = identity(info)
	return h, old, nil
}

// overwrite replaces the content of f, whose size is given, and makes it durable. It writes the last piece first, as
// soon as possible after the size was checked, and truncates the file only if the new content is shorter: another
// program may be appending.
func overwrite(f *os.File, size int64, content ...[]byte) error {
	end := sizeOf(content)
	if end < size {
		if err := f.Truncate(end); err != nil {
			return err
		}
	}
	for at, i := end, len(content)-1; i >= 0; i-- {
		at -= int64(len(content[i]))
		if _, err := f.WriteAt(content[i], at); err != nil {
			return err
		}
	}
	return f.Sync()
}

// sizeOf is the size of a content in pieces, in bytes.
func sizeOf(content [][]byte) (n int64) {
	for _, piece := range content {
		n += int64(len(piece))
	}
	return n
}

// restore restores the attributes of f that a write may clear, and clears the set-id bits, which
// a write by root keeps.
func (a attrs) restore(f *os.File) { _ = a.apply(f) }
