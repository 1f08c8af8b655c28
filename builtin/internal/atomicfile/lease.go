package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// A program may open a file for writing at the moment in which the file is renamed over. It then writes to the old
// file, which has no name any more. What it appends is also appended to the new file, as if it had come a moment
// later. If it rewrites the file, its content is kept instead of ours.

// How long, and with which pauses, Replace waits for a program that has opened the file at that moment. Most programs
// write within a millisecond, but on a machine under load it can take more than 100.
const (
	catchUpFor  = time.Second
	catchUpStep = time.Millisecond
)

// errOverwritten reports that the content of another program was kept.
var errOverwritten = fmt.Errorf("another program has written it at the same time, and its content was kept: %w",
	ErrOvertaken)

// undisturbed verifies, immediately before the replacement, that no other program has changed the current file, or is
// about to.
func (r *replacement) undisturbed() error {
	switch {
	case r.hold.wanted():
		return errors.New("another program opened it for writing while this call ran; Read it again and repeat the call")
	case r.hold.holds():
		return nil
	}
	return r.Expect(r.current)
}

// appendTail carries over what another program writes to the file that was renamed over, if it has opened that file,
// and writes within a time. The warning says what could not be carried over and is lost. The error is
// [errOverwritten], or nil.
func (r *replacement) appendTail(within time.Duration) (warning, err error) {
	if !r.hold.wanted() {
		return nil, nil
	}
	before, err := wholeOf(r.current)
	r.hold.release()
	if !closedWithin(r.current, within) {
		defer func() {
			if warning == nil {
				warning = errors.New("another program opened it for writing at the same moment and has not closed it yet, and " +
					"what that writes from now on is lost")
			}
		}()
	}
	now, nowErr := wholeOf(r.current)
	if err := errors.Join(err, nowErr); err != nil {
		return fmt.Errorf("another program opened it for writing at the same moment, and what it wrote cannot be read: %w",
			unwrapPath(err)), nil
	}
	more, appended := bytes.CutPrefix(now, before)
	switch {
	case !appended:
		if err := r.yield(now); err != nil {
			return fmt.Errorf("another program wrote it at the same moment, and its %d bytes are lost, as they could not be "+
				"put back: %w", len(now), unwrapPath(err)), nil
		}
		return nil, errOverwritten
	case len(more) > 0:
		if err := r.appendMore(more); err != nil {
			return fmt.Errorf("another program appended %d bytes at the same moment, which are lost in whole or in part: %w",
				len(more), unwrapPath(err)), nil
		}
	}
	return nil, nil
}

// closedWithin waits until no process has a file open for writing, and reports whether that was within a time.
func closedWithin(f *os.File, within time.Duration) bool {
	for waited := time.Duration(0); ; waited += catchUpStep {
		h := holdFile(f)
		h.release()
		if !h.busy || waited >= within {
			return !h.busy
		}
		time.Sleep(catchUpStep)
	}
}

func wholeOf(f *os.File) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.NewSectionReader(f, 0, info.Size()))
}

// appendMore appends to the new file what was appended to the old one.
func (r *replacement) appendMore(more []byte) error {
	f, err := r.open(os.O_WRONLY | os.O_APPEND)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && !os.SameFile(info, r.ours.info) {
		err = ErrOvertaken
	}
	if err == nil {
		_, err = f.Write(more)
	}
	return errors.Join(err, f.Close())
}

// yield restores what another program rewrote. It restores the old file itself, if that still has a name.
func (r *replacement) yield(content []byte) error {
	if r.exchanged != nil {
		stands, err := r.putBack()
		if err == nil && !stands {
			err = ErrOvertaken
		}
		return err
	}
	t := r.newTemp()
	defer t.discard()
	if err := t.write([][]byte{content}, tempMode); err != nil {
		return err
	}
	if err := r.attrs.apply(t.file); err != nil {
		return err
	}
	if err := t.close(r.Sync); err != nil {
		return err
	}
	return r.renameOver(t, r.ours.info)
}
