package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// A program that opens a file for writing in the moment in which it is renamed over writes to the old one, which nobody
// sees any more. What it appends is carried over, as if it had come a moment later; what it writes anew stands.

// How long, and in what steps, a program that came in that moment may take to write.
const (
	catchUpFor  = 100 * time.Millisecond
	catchUpStep = time.Millisecond
)

// errOverwritten says that what another program wrote stands.
var errOverwritten = errors.New("another program wrote it in the same moment, and what that wrote stands; Read it again and repeat the call")

// undisturbed makes sure, at the last moment, that nobody has changed the current file meanwhile, or is about to.
func (r *replacement) undisturbed() error {
	switch {
	case r.hold.wanted():
		return errors.New("another program opened it for writing while this call ran; Read it again and repeat the call")
	case r.hold.holds():
		return nil
	}
	return r.expect(r.current)
}

// catchUp carries over what is written to the file that was renamed over, by who came to open it while that was done.
func (r *replacement) catchUp() error {
	if !r.hold.wanted() {
		return nil
	}
	before, err := wholeOf(r.current)
	r.hold.release()
	for waited := time.Duration(0); waited < catchUpFor; waited += catchUpStep {
		if h := holdFile(r.current); !h.busy {
			h.release()
			break
		}
		time.Sleep(catchUpStep)
	}
	now, nowErr := wholeOf(r.current)
	if err := errors.Join(err, nowErr); err != nil {
		return fmt.Errorf("read what another program wrote meanwhile: %w", err)
	}
	more, appended := bytes.CutPrefix(now, before)
	switch {
	case !appended:
		return r.giveWay(now)
	case len(more) > 0:
		return r.appendMore(more)
	}
	return nil
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
	f, err := r.dir.OpenFile(r.base, os.O_WRONLY|os.O_APPEND|openFlags, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(more)
	return errors.Join(err, f.Close())
}

// giveWay puts back what another program wrote anew.
func (r *replacement) giveWay(content []byte) error {
	t := r.newTemp()
	defer t.discard()
	err := t.write([][]byte{content}, tempMode)
	if err == nil {
		err = r.attrs.apply(t.file)
	}
	if err == nil {
		err = t.close(r.Sync)
	}
	if err == nil {
		err = r.rename(t)
	}
	if err != nil {
		return fmt.Errorf("put back what another program wrote in the same moment: %w", err)
	}
	return fmt.Errorf("write %s: %w", r.path(), errOverwritten)
}
