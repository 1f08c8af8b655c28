package atomicfile

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"strings"
)

// The name of a temporary file is this prefix, random text, and this suffix. It is hidden.
const (
	tempPrefix = ".toolhost-"
	tempSuffix = ".tmp"
)

// IsTemp reports whether a name is that of a temporary file, of this process or another.
func IsTemp(name string) bool {
	random, prefixed := strings.CutPrefix(name, tempPrefix)
	random, suffixed := strings.CutSuffix(random, tempSuffix)
	return prefixed && suffixed && len(random) >= randomLength && strings.Trim(random, randomLetters) == ""
}

// The random text has at least so many of these letters: see [rand.Text].
const (
	randomLength  = 26
	randomLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
)

// tempMode is the mode of a temporary file until it takes over that of the
// file it replaces.
const tempMode fs.FileMode = 0o600

// A temp is a temporary file, next to the one it is to replace.
type temp struct {
	dir    *os.Root
	handle *os.File // dir itself
	name   string
	file   *os.File // nil once closed
	intent *entry   // nil without a journal
	gone   bool     // not yet created, renamed or removed
	noted  bool     // the record says what it is exchanged for

	// temps gets the name back for reuse.
	temps *Temps
	path  string
}

// newTemp chooses a name for a temporary file, which cannot be guessed, and records it in the journal if possible.
func (r *replacement) newTemp() *temp {
	t := &temp{dir: r.dir, handle: r.handle, name: tempPrefix + rand.Text() + tempSuffix, gone: true}
	if r.JournalDir == "" {
		return t
	}
	t.temps, t.path = r.Temps, r.dirPath()
	if kept, ok := r.Temps.take(t.path); ok {
		if isAt(kept.intent.file, kept.intent.path) {
			t.name, t.intent = kept.name, kept.intent
			return t
		}
		kept.intent.abandon() // the journal was removed
	}
	t.intent, _ = recordTemp(r.JournalDir, t.path, t.name) // nil on an error, see Options
	return t
}

// write creates the file. O_EXCL makes it fail if the name is used.
// If the file cannot be created t.file stays nil.
func (t *temp) write(content [][]byte, mode fs.FileMode) error {
	f, err := t.dir.OpenFile(t.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|openFlags, mode) // see openHandle
	if errors.Is(err, fs.ErrExist) {
		t.temps = nil // another process uses this name: do not reuse it
	}
	if err != nil {
		return err
	}
	t.file, t.gone = f, false
	for _, piece := range content {
		if _, err := f.Write(piece); err != nil {
			return err
		}
	}
	return nil
}

// close ends the writing. It comes before the rename because some file systems
// report a full disk only then.
func (t *temp) close(sync bool) error {
	var err error
	if sync {
		err = t.file.Sync()
	}
	err = errors.Join(err, t.file.Close())
	t.file = nil
	return err
}

// remove removes the file, if it exists.
func (t *temp) remove() error {
	if t.file != nil {
		t.file.Close()
		t.file = nil
	}
	if t.gone {
		return nil
	}
	if err := t.dir.Remove(t.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	t.gone = true
	return nil
}

// noteSwap records that the temporary name is about to be exchanged with the name base. in gets the name base, unless
// it is nil, and out is expected to get the temporary name. back says that in belongs to another program, and is put
// back. After a kill, Recover learns from the record whose file has the temporary name.
func (t *temp) noteSwap(base string, in, out fs.FileInfo, back bool) {
	if t.intent == nil {
		return
	}
	h := header{Dir: t.path, Base: t.name, Target: base, Back: back}
	h.Dev, h.Ino = identity(out)
	if in != nil {
		_, h.NewIno = identity(in)
	}
	t.noted = true
	_ = t.intent.write(h) // if it fails, a kill during the exchange can lose another program's file
}

// discard removes the temporary file and its record. If the
// file cannot be removed the record stays, for Recover. It may be called
// more than once.
func (t *temp) discard() {
	if err := t.remove(); err != nil {
		t.intent.abandon()
		return
	}
	if t.noted && t.intent.write(header{Dir: t.path, Base: t.name}) != nil {
		t.temps = nil // do not reuse the name: its record still describes the exchange
	}
	t.noted = false
	if t.intent != nil && !t.temps.keep(t.path, reserved{t.name, t.intent}) {
		t.intent.done()
	}
	t.intent = nil
}
