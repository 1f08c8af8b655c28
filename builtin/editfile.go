package builtin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/toolhost/toolhost/builtin/internal/atomicfile"
	"github.com/toolhost/toolhost/builtin/internal/document"
	"github.com/toolhost/toolhost/builtin/internal/journal"
	"github.com/toolhost/toolhost/builtin/internal/memory"
	"github.com/toolhost/toolhost/builtin/internal/text"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/readstate"
)

// maxTarget is the largest file that Edit and Write change, in bytes.
const maxTarget = 1 << 30

// An UnreadError is the error of a call that changes what its scope has not read, or not as it is now.
type UnreadError struct{ error }

// A target is the file that an Edit or a Write changes, with its content. It is locked against other scopes and
// processes, so that the content cannot change before it is replaced.
type target struct {
	path      guard.Path
	dir       *os.Root
	base      string
	unlock    func()
	made      int    // how many directories were created
	undoMkdir func() // removes the directories that were created, if the file was not
	missing   bool
	info      fs.FileInfo // nil when missing
	content   []byte
	known     journal.Blob // of content; zero if it was not hashed
	charset   string       // of content, if it is text
	release   func()       // releases the reserved memory; nil if none is reserved
	// elsewhere means that the file has changed outside of the pages that this scope has read.
	elsewhere bool
}

// load reads the current content.
func (t *target) load() error {
	f, err := t.path.Open()
	if errors.Is(err, fs.ErrNotExist) {
		t.missing = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot open %s: %w", t.path, err)
	}
	defer f.Close()
	if t.info, err = f.Stat(); err != nil {
		return fmt.Errorf("%s could not be read: %w", t.path, err)
	}
	switch {
	case t.info.IsDir():
		return fmt.Errorf("%s is a directory: name a file in it", t.path)
	case !t.info.Mode().IsRegular():
		return special(t.path, t.info.Mode())
	case t.info.Size() > maxTarget:
		return fmt.Errorf("%s has %d bytes, Edit and Write change files of up to %d: use Bash", t.path,
			t.info.Size(), maxTarget)
	}
	if t.info.Size() >= largeTarget { // it is not read for nothing
		head := make([]byte, document.DetectBytes)
		n, _ := f.ReadAt(head, 0) // an error shows below
		if err := t.notText(head[:n]); err != nil {
			return err
		}
	}
	t.releaseMemory() // of an earlier load
	if t.info.Size() > wholeFile {
		if t.release, err = memory.Take(copies * t.info.Size()); err != nil {
			return fmt.Errorf("%s is %w", t.path, err)
		}
	}
	if t.content, err = readAll(f, t.info.Size(), maxTarget); err != nil {
		return fmt.Errorf("%s could not be read: %w", t.path, err)
	}
	return nil
}

// readAll reads a file of about size bytes, at most limit. The file may have grown or shrunk since its size was read.
func readAll(f io.Reader, size, limit int64) ([]byte, error) {
	return readInto(new(bytes.Buffer), f, size, limit)
}

// readInto is readAll into a reused buffer. It never returns nil.
func readInto(room *bytes.Buffer, f io.Reader, size, limit int64) ([]byte, error) {
	room.Grow(int(size) + bytes.MinRead) // ReadFrom needs MinRead to see EOF without growing
	_, err := room.ReadFrom(io.LimitReader(f, limit))
	return room.Bytes(), err
}

// largeTarget is the size from which the memory of a change is returned to the system at once, in bytes. Otherwise
// two such changes in a row would take twice the memory.
const largeTarget = 64 << 20

// copies is how many copies of a file its change may hold in memory: the old and the new content, and those for the
// diff.
const copies = 3

// releaseMemory ends the reservation of memory.
func (t *target) releaseMemory() {
	if t.release != nil {
		t.release()
		t.release = nil
	}
}

func (t *target) close() {
	t.releaseMemory()
	t.undoMkdir() // under the lock: the next holder sees that the directory has gone
	t.unlock()
	t.dir.Close()
	if len(t.content) >= largeTarget {
		t.content = nil
		go debug.FreeOSMemory()
	}
}

// driftLines limits the diff that shows a change by another program. A longer change does not count as read.
const driftLines = 400

// freshness returns an error for a file that this scope has not read, or that has changed since. A change that the
// error shows completely counts as read. With excerpts, a file of which an Edit has shown an excerpt counts as read.
func (t *target) freshness(env *Env, excerpts bool) (readstate.Status, error) {
	standing := env.ReadState.Check(t.path.Real(), t.info, t.content)
	t.elsewhere = standing.Elsewhere
	switch {
	case standing.State == readstate.Unread || standing.Excerpt && !excerpts:
		return standing, t.unread()
	case standing.State == readstate.Current:
		if standing.Hashed {
			t.known = journal.BlobOfHash(standing.Hash, int64(len(t.content)))
		}
		return standing, nil
	}
	return standing, &UnreadError{t.drift(env, standing.Old)}
}

// drift returns an error with the difference between the file and what this scope has read. old is nil if the scope
// has not read the whole file.
func (t *target) drift(env *Env, old []byte) error {
	head := fmt.Sprintf("%s has changed on disk since it was last read in this session; nothing was written.", t.path)
	again := " Read it again, then decide whether this call is still right."
	if old == nil || text.IsBinary(t.content) || text.IsBinary(old) {
		return errors.New(head + again)
	}
	was, now := text.Decode(old), text.Decode(t.content)
	diff, complete := text.Diff(t.path.String(), was.String(), now.String(), contextLines, driftLines)
	if !complete || len(diff) > changeLimit/2 {
		return errors.New(head + " The change is too large to show." + again)
	}
	if diff == "" {
		diff = "(only the encoding or the byte-order mark changed)\n"
	}
	t.recordRead(env.ReadState, journal.Blob{}, t.content)
	return errors.New(head + " What changed:\n\n" + diff +
		"\nThis is the whole change and counts as read: repeat the call if it is still right.")
}

// concurrentChange adds the difference to the error of a change that failed because another program has changed the
// file.
func (t *target) concurrentChange(env *Env, err error) error {
	if !errors.Is(err, atomicfile.ErrOvertaken) || t.missing {
		return err
	}
	old := t.content
	now := target{path: t.path, dir: t.dir, base: t.base, charset: t.charset, elsewhere: t.elsewhere}
	defer now.releaseMemory()
	if now.load() != nil || now.missing || bytes.Equal(now.content, old) {
		return err
	}
	return now.drift(env, old)
}

// unread returns the error for a file that this scope has not read.
func (t *target) unread() error {
	if err := t.notText(t.content[:min(len(t.content), document.DetectBytes)]); err != nil {
		return err
	}
	return &UnreadError{fmt.Errorf("%s has not been read in this session: Read it first, then repeat this call", t.path)}
}

// notText returns the error for a file that Read cannot show, by the beginning of the file.
func (t *target) notText(head []byte) error {
	kind, what := document.Detect(head, t.path.Real())
	if kind != document.OtherFile {
		return nil
	}
	return fmt.Errorf("%s is not text (%s): Read cannot show it, so it was not changed. To replace the whole file, "+
		"remove it with Bash, then repeat this call", t.path, what)
}

// text returns the content as text, in the charset in which it was shown or written. It returns nil if it is not text.
func (t *target) text(standing readstate.Status) *text.Text {
	content := text.DecodeAs(t.content, standing.Charset)
	if content != nil {
		t.charset = content.Charset()
	}
	return content
}

// retryUTF8 returns the content as UTF-8 if err says that its charset lacks a character and the content is ASCII,
// which is valid UTF-8 too. Otherwise it returns nil.
func (t *target) retryUTF8(err error) *text.Text {
	if !errors.As(err, new(*text.UnmappableError)) {
		return nil
	}
	content := text.Decode(t.content)
	if content.Charset() == t.charset || !text.IsASCII(t.content) || bytes.IndexByte(t.content, 0) >= 0 { // as UTF-16 has
		return nil
	}
	t.charset = content.Charset()
	return content
}

// recordRead records content as last read or written by this scope. b is its blob, or zero if it is not known.
func (t *target) recordRead(scope *readstate.Scope, b journal.Blob, content ...[]byte) {
	info, err := t.dir.Lstat(t.base)
	if err != nil || !info.Mode().IsRegular() {
		scope.Forget(t.path.Real())
		return
	}
	v := readstate.VersionOf(info)
	v.Size = int64(sizeOf(content))
	v.Hash, v.Hashed = b.Hash()
	v.Charset = t.charset
	scope.Changed(t.path.Real(), v, t.elsewhere, content...)
}

// replace writes new content, which may be in pieces. The note says that the change cannot be undone, or what failed
// after the file was written.
func (t *target) replace(env *Env, content ...[]byte) (note string, err error) {
	before := t.content
	if t.missing {
		before = nil
	} else if before == nil {
		before = []byte{}
	}
	entry, note := t.journal(env, before, content)
	out, err := t.write(env, content)
	if entry != nil && t.full(env.Runtime.history, err) { // the history entry itself takes the space
		note = "this change cannot be undone: the disk has no room for both"
		err = errors.Join(err, entry.Abort())
		if entry = nil; env.Runtime.history.Shrink() {
			t.restat()
			out, err = t.write(env, content)
		}
	}
	if errors.Is(err, atomicfile.ErrTorn) {
		return "", err // the next start repairs the file and completes the entry
	}
	if err != nil {
		return "", errors.Join(t.concurrentChange(env, fmt.Errorf("%s was not changed: %w", t.path, err)),
			entry.Abort())
	}
	t.undoMkdir = func() {}
	t.recordRead(env.ReadState, entry.After(), content...)
	if err := entry.End(); err != nil {
		env.Runtime.log.Warn("cannot write the history", "file", t.path.Real(), "error", err)
	}
	if out.Warning != nil {
		env.Runtime.log.Warn("a file was changed, but something failed after it", "file", t.path.Real(), "error",
			out.Warning)
		note = strings.TrimPrefix(note+"; "+fmt.Sprintf("the file was changed, but %v", out.Warning), "; ")
	}
	return note, nil
}

// journal starts an entry in the history. The note says why the change cannot be undone. Files in the private
// directories of the caller's sandbox are not recorded: the history outlives them, and their names mean other files
// outside of it.
func (t *target) journal(env *Env, before []byte, content [][]byte) (entry *journal.Entry, note string) {
	switch {
	case env.undo != nil:
		return nil, ""
	case t.path.Own():
		return nil, "this change cannot be undone: the history keeps no temporary files"
	}
	entry, err := env.Runtime.history.Begin(t.change(env), before, content...)
	if err == nil {
		err = entry.Undoable()
	}
	if err != nil {
		note = fmt.Sprintf("this change cannot be undone: %v", err)
	}
	return entry, note
}

// write replaces the file. If the disk is full, it removes old history entries and tries again.
func (t *target) write(env *Env, content [][]byte) (out atomicfile.Outcome, err error) {
	for {
		out, err = atomicfile.Replace(t.dir, t.base, t.options(env), content...)
		if !t.full(env.Runtime.history, err) || !env.Runtime.history.Shrink() {
			return out, err
		}
		t.restat()
	}
}

// restat updates t.info after a write in place that did not start, which may have changed the modification time.
func (t *target) restat() {
	now := target{path: t.path}
	defer now.releaseMemory()
	if now.load() == nil && !now.missing && !t.missing && bytes.Equal(now.content, t.content) &&
		os.SameFile(now.info, t.info) {
		t.info = now.info
	}
}

// full reports whether an error means that the disk with the history is full.
func (t *target) full(history *journal.Journal, err error) bool {
	if t.path.Own() {
		return false // another disk is full
	}
	dir := filepath.Dir(t.path.Real())
	if errors.Is(err, atomicfile.ErrNoJournal) {
		dir = "" // the file is on the same disk as the history
	}
	return history.Fills(dir, err)
}

// options returns how the file is replaced or removed.
func (t *target) options(env *Env) atomicfile.Options {
	o := atomicfile.Options{
		Sync: env.Durable, Mode: 0o666, MustNotExist: t.missing, JournalDir: env.Runtime.journal,
		Temps: &env.Runtime.temps, Expect: t.verifyUnchanged,
	}
	if env.undo != nil {
		o.Mode = newMode(env.undo.left)
		o.BreakLinks = env.undo.left != 0 // a command may have created the link; an edit has changed all names
	}
	return o
}

// verifyUnchanged checks that the file is still the one that was judged and read. Other programs ignore the lock, and
// a file that is written in place could now be a hard link to a protected one.
func (t *target) verifyUnchanged(current *os.File) error {
	if current == nil || t.missing {
		if current == nil && t.missing {
			return nil
		}
		return atomicfile.ErrOvertaken
	}
	info, err := current.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(info, t.info) || info.Size() != t.info.Size() || !info.ModTime().Equal(t.info.ModTime()) {
		return atomicfile.ErrOvertaken
	}
	return nil
}

// create writes a file that was missing or empty.
func (t *target) create(env *Env, content string) (Result, error) {
	raw, _, err := text.Encode(nil, content)
	if err != nil {
		return Result{}, fmt.Errorf("%s was not written: %w", t.path, err)
	}
	note, err := t.replace(env, raw)
	if err != nil {
		return Result{}, err
	}
	verb := "Created"
	if !t.missing {
		verb = "Filled the empty file"
	}
	head := fmt.Sprintf("%s %s (%s, %s)", verb, t.path, count(lineCount(content), "line"), count(len(raw), "byte"))
	return Result{
		Text:       changeText(head, notes(note), ""),
		Structured: changeOutput{Path: t.path.String(), Created: t.missing, Bytes: len(raw)},
	}, nil
}

// sizeOf returns the total size of pieces, in bytes.
func sizeOf(content [][]byte) int {
	n := 0
	for _, piece := range content {
		n += len(piece)
	}
	return n
}
