package builtin

import (
	"bytes"
	"cmp"
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
	"github.com/toolhost/toolhost/builtin/internal/history"
	"github.com/toolhost/toolhost/builtin/internal/memory"
	"github.com/toolhost/toolhost/builtin/internal/text"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/readstate"
)

// maxTarget is the largest file that Edit and Write change, in bytes.
const maxTarget = 1 << 30

// A target is the file that an Edit or a Write changes: locked, and its content read. The lock spans scopes
// and processes, so that what was read is what is replaced.
type target struct {
	path      guard.Path
	dir       *os.Root
	base      string
	unlock    func()
	undoMkdir func() // takes away the directories that were made for a file that is not
	missing   bool
	info      fs.FileInfo // nil when missing
	content   []byte
	known     history.Blob // stands for content; zero if it was not hashed
	charset   string       // of what was decoded or encoded, if it is text
	release   func()       // gives back the memory that was reserved; nil if none was
	// elsewhere says that the file has changed outside the pages of it that this scope knows.
	elsewhere bool
}

// load reads the content as it is now.
func (t *target) load() error {
	var room bytes.Buffer
	info, ok, err := t.path.Content(&room, wholeFile)
	if ok {
		t.info, t.content = info, room.Bytes()
		return nil
	}
	var f *os.File
	if err == nil {
		f, err = t.path.Open()
	}
	if errors.Is(err, fs.ErrNotExist) {
		t.missing = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s could not be opened: %w", t.path, err)
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
		return fmt.Errorf("%s has %d bytes; files of more than %d are not changed here", t.path, t.info.Size(), maxTarget)
	}
	t.releaseMemory() // of an earlier load
	if t.release, err = memory.Take(copies * t.info.Size()); err != nil {
		return fmt.Errorf("%s is %w", t.path, err)
	}
	if t.content, err = readAll(f, t.info.Size(), maxTarget); err != nil {
		return fmt.Errorf("%s could not be read: %w", t.path, err)
	}
	return nil
}

// sameFile is [os.SameFile], of what [guard.Path.Content] describes as well.
func sameFile(a, b fs.FileInfo) bool {
	v, w := readstate.VersionOf(a), readstate.VersionOf(b)
	return os.SameFile(a, b) || v.Inode != 0 && v.Inode == w.Inode && v.Dev == w.Dev
}

// readAll reads a file of about size bytes in one piece, but no more than limit; it may have grown or shrunk
// since its size was read.
func readAll(f io.Reader, size, limit int64) ([]byte, error) {
	return readInto(new(bytes.Buffer), f, size, limit)
}

// readInto is readAll into storage that may have been used before. What it returns is not nil.
func readInto(room *bytes.Buffer, f io.Reader, size, limit int64) ([]byte, error) {
	room.Grow(int(size) + bytes.MinRead) // to notice the end without growing
	_, err := room.ReadFrom(io.LimitReader(f, limit))
	return room.Bytes(), err
}

// largeTarget is the size from which the memory that a change took is given back at once, in bytes: two such
// changes one after the other would else take twice what one takes.
const largeTarget = 64 << 20

// copies is how many times the size of a file its change may hold in memory: before, after, and what is compared.
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

// driftLines bounds the diff that shows a change by another program. One that does not fit is not counted as seen.
const driftLines = 400

// freshness refuses a file that this scope has not read, or that has changed since. A change that can be
// shown whole counts as read. A file of which an Edit has shown an excerpt counts as read if excerpts says so.
func (t *target) freshness(env *Env, excerpts bool) (readstate.Status, error) {
	standing := env.ReadState.Check(t.path.Real(), t.info, t.content)
	t.elsewhere = standing.Elsewhere
	switch {
	case standing.State == readstate.Unread || standing.Excerpt && !excerpts:
		return standing, t.unread()
	case standing.State == readstate.Current:
		if standing.Hashed {
			t.known = history.BlobOfHash(standing.Hash, int64(len(t.content)))
		}
		return standing, nil
	}
	return standing, t.drift(env, standing.Old)
}

// drift tells how the file differs from what this scope knew of it; old is nil if that is not known whole.
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
	t.recordRead(env, history.Blob{}, t.content)
	return errors.New(head + " What changed:\n\n" + diff + "\nThis is the whole change and counts as read: repeat the call if it is still right.")
}

// concurrentChange explains an error of a change that failed because another program changed the file first: by what that program changed, as far as it is known.
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

// unread says what to do about a file that this scope has not read.
func (t *target) unread() error {
	if kind, what := document.Detect(t.content[:min(len(t.content), document.DetectBytes)], t.path.Real()); kind == document.OtherFile {
		return fmt.Errorf("%s is not text (%s) and cannot be Read, so it is not changed here. If all of it is to be replaced, remove it with Bash first, then repeat this call", t.path, what)
	}
	return fmt.Errorf("%s has not been read in this session: Read it first, then repeat this call", t.path)
}

// text is the content as text, in the charset that it was shown or written in; nil if it is none.
func (t *target) text(standing readstate.Status) *text.Text {
	content := text.DecodeAs(t.content, standing.Charset)
	if content != nil {
		t.charset = content.Charset()
	}
	return content
}

// retryUTF8 is the content as UTF-8 after a charset lacked a character: where it holds ASCII alone, that is what it is as well. It is nil
// where err is another error or the content is in that charset indeed.
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

// recordRead records content as what this scope last read or wrote. b stands for it, zero if it is not known.
func (t *target) recordRead(env *Env, b history.Blob, content ...[]byte) {
	info, err := t.dir.Lstat(t.base)
	if err != nil || !info.Mode().IsRegular() {
		env.ReadState.Forget(t.path.Real())
		return
	}
	v := readstate.VersionOf(info)
	v.Size = int64(sizeOf(content))
	v.Hash, v.Hashed = b.Hash()
	v.Charset = t.charset
	env.ReadState.Changed(t.path.Real(), v, t.elsewhere, content...)
}

// replace gives the file new content, which may come in pieces. The note says when the change cannot be undone, and what else
// failed though the file has its new content.
func (t *target) replace(env *Env, content ...[]byte) (note string, err error) {
	before := t.content
	if t.missing {
		before = nil
	} else if before == nil {
		before = []byte{}
	}
	entry, note := t.journal(env, before, content)
	out, err := t.write(env, content)
	if entry != nil && t.full(env, err) { // what the history keeps of this change is in the way itself
		note = "this change cannot be undone: the disk has no room for both"
		err = errors.Join(err, entry.Failed())
		if entry = nil; env.Runtime.history.Shrink() {
			t.restat()
			out, err = t.write(env, content)
		}
	}
	if errors.Is(err, atomicfile.ErrTorn) {
		return "", err // how the change ended shows when the next start has made the file whole
	}
	if err != nil {
		return "", errors.Join(t.concurrentChange(env, fmt.Errorf("%s was not changed: %w", t.path, err)), entry.Failed())
	}
	t.undoMkdir = func() {}
	t.recordRead(env, entry.Change().After, content...)
	if err := entry.Done(); err != nil {
		env.Runtime.log.Warn("the history could not be written", "file", t.path.Real(), "error", err)
	}
	if out.Warning != nil {
		env.Runtime.log.Warn("a file was changed, but something failed after it", "file", t.path.Real(), "error", out.Warning)
		note = strings.TrimPrefix(note+"; "+fmt.Sprintf("the file was changed, but %v", out.Warning), "; ")
	}
	return note, nil
}

// journal begins a change in the history, and says why it cannot be undone. The history outlives files of the caller's own, and
// to the host their names mean other files.
func (t *target) journal(env *Env, before []byte, content [][]byte) (entry *history.Entry, note string) {
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

// write replaces the file. A disk that is full does not refuse it as long as the history can give room.
func (t *target) write(env *Env, content [][]byte) (out atomicfile.Outcome, err error) {
	for {
		out, err = atomicfile.Replace(t.dir, t.base, t.options(env), content...)
		if !t.full(env, err) || !env.Runtime.history.Shrink() {
			return out, err
		}
		t.restat()
	}
}

// restat looks at the file again after a write in place that did not begin, which may have set its time.
func (t *target) restat() {
	now := target{path: t.path}
	defer now.releaseMemory()
	if now.load() == nil && !now.missing && !t.missing && bytes.Equal(now.content, t.content) && sameFile(now.info, t.info) {
		t.info = now.info
	}
}

// full reports whether an error says that the disk which the history is on is full.
func (t *target) full(env *Env, err error) bool {
	if t.path.Own() {
		return false // it is on another
	}
	dir := filepath.Dir(t.path.Real())
	if errors.Is(err, atomicfile.ErrNoJournal) {
		dir = "" // it lies next to the history
	}
	return env.Runtime.history.Fills(dir, err)
}

// options say how the file is replaced or removed.
func (t *target) options(env *Env) atomicfile.Options {
	o := atomicfile.Options{
		Sync: env.Durable, Mode: 0o666, MustNotExist: t.missing, JournalDir: env.Runtime.journal, Temps: &env.Runtime.temps, Expect: t.verifyUnchanged,
	}
	if env.undo != nil {
		o.Mode = cmp.Or(env.undo.left.Perm(), o.Mode)
		o.BreakLinks = *env.undo != undoModes{} // a command made the link, or may have
	}
	return o
}

// verifyUnchanged makes sure that what is replaced is what was judged and read: another program does not take our lock,
// and a file that is written in place could by now be another name of one that must not be.
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
	if !sameFile(info, t.info) || info.Size() != t.info.Size() || !info.ModTime().Equal(t.info.ModTime()) {
		return atomicfile.ErrOvertaken
	}
	return nil
}

// create gives content to a file that was missing or empty.
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

// sizeOf is the size of a content in pieces, in bytes.
func sizeOf(content [][]byte) int {
	n := 0
	for _, piece := range content {
		n += len(piece)
	}
	return n
}
