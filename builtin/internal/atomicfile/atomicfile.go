package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/toolhost/toolhost/guard/lease"
)

// DefaultMode is the mode of a new file, before the umask, like that of a file
// made by a shell.
const DefaultMode fs.FileMode = 0o666

// setID are the bits of a mode that give a program the rights of the owner or the group of its file. A changed file
// loses them, as with any write: they were set for the old content.
const setID = fs.ModeSetuid | fs.ModeSetgid

// Options says how to replace a file. The zero value replaces or creates it,
// without a journal: files that would have to be written in place are refused.
type Options struct {
	// Sync makes the new content durable before Replace returns.
	Sync bool

	// Mode is the mode of a file that did not exist, before the umask;
	// DefaultMode if zero. An existing file keeps its own.
	Mode fs.FileMode

	// BreakLinks leaves the other names of a file with several hard links as they are.
	BreakLinks bool

	// MustNotExist refuses with fs.ErrExist if there is a file.
	MustNotExist bool

	// Expect, if set, is called with the file to replace, open for reading,
	// or nil if there is none. An error stops the replacement and is returned
	// unchanged. If writers cannot be excluded, Expect is called again
	// immediately before the replacement.
	Expect func(current *os.File) error

	// JournalDir is the directory of the journal. It is created, for the owner
	// alone, when first needed. If it cannot be written, files that need only
	// a rename are replaced anyway: a process that is
	// killed then leaves at most a temporary file.
	JournalDir string

	// Temps, if set, avoids most of the cost of the journal.
	Temps *Temps
}

// Outcome says what [Replace] did.
type Outcome struct {
	Created bool   // there was no file before
	InPlace bool   // the file was written in place
	Why     string // if InPlace: what a rename would have lost
	Warning error  // the file has its new content, but something else that was promised failed; nil if nothing did
}

// Replace gives the file base in dir the given content, in any number of pieces. Callers that derive the
// content from the file must hold the lock of the
// directory from before they read it, see [Locks].
//
// base must be the name of a regular file, or unused. A symbolic link is
// refused: its target is in another directory, which the caller has to
// judge and open. A file without write permission is refused even if a
// rename would succeed.
//
// After an error the file is unchanged, or as another program wrote it at the
// same time, and no temporary file remains, except after [ErrTorn].
// A failure after the file has its new content is not an error but an
// [Outcome.Warning].
func Replace(dir *os.Root, base string, o Options, content ...[]byte) (Outcome, error) {
	if base == "." || base == ".." || base != filepath.Base(base) || strings.ContainsRune(base, 0) {
		return Outcome{}, fmt.Errorf("%q is not the name of a file in a directory", base)
	}
	r, err := begin(dir, base, o)
	if err != nil {
		return Outcome{}, err
	}
	defer r.release()
	r.content = content
	if r.current == nil {
		if err := r.Expect(nil); err != nil {
			return Outcome{}, err
		}
		return r.create()
	}
	defer r.current.Close() // a file that was only read
	if o.MustNotExist {
		return Outcome{}, r.failed("create", fs.ErrExist)
	}
	r.hold = holdFile(r.current)
	defer r.hold.release()
	if err := r.Expect(r.current); err != nil {
		return Outcome{}, err
	}
	return r.update()
}

// begin opens the directory and the file to replace or remove, if there is one.
func begin(dir *os.Root, base string, o Options) (*replacement, error) {
	handle, err := openHandle(dir)
	if err != nil {
		return nil, fmt.Errorf("open the directory %s: %w", dir.Name(), err)
	}
	if o.Expect == nil {
		o.Expect = func(*os.File) error { return nil }
	}
	r := &replacement{dir: dir, handle: handle, base: base, Options: o}
	if err := r.openCurrent(); err != nil {
		r.release()
		return nil, r.failed("open", err)
	}
	return r, nil
}

// openHandle opens the directory of a root itself. The os package tries to poll each file that it opens. For that it
// makes the file non-blocking and then blocking again, which takes as long as the opening, unless the file was opened
// non-blocking. Directories and regular files cannot be polled, and the mode has no effect on them.
func openHandle(dir *os.Root) (*os.File, error) { return dir.OpenFile(".", os.O_RDONLY|openFlags, 0) }

// A replacement is one call of Replace under way.
type replacement struct {
	dir       *os.Root
	handle    *os.File // dir itself
	base      string
	content   [][]byte
	current   *os.File    // the file to replace, nil if there is none
	was       fs.FileInfo // of current
	attrs     attrs       // of current
	hold      hold        // on current
	ours      pinned      // the new file
	exchanged *temp       // the name that current has now; nil unless names were exchanged
	Options
}

// release releases the resources of the replacement.
func (r *replacement) release() {
	r.ours.release()
	r.handle.Close()
}

// openCurrent opens the file to be replaced, if it exists, without following
// a link or waiting for the other end of a FIFO.
func (r *replacement) openCurrent() error {
	info, err := r.dir.Lstat(r.base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return notRegular(info.Mode())
	}
	f, err := r.open(os.O_RDONLY)
	if err != nil {
		return err
	}
	opened, err := f.Stat()
	if err == nil && !os.SameFile(info, opened) {
		err = ErrOvertaken
	}
	if err != nil {
		f.Close()
		return err
	}
	r.current, r.was = f, opened
	return nil
}

// open opens the file without following a link. Another program may hold a lease on it, for which it waits a moment.
func (r *replacement) open(flag int) (*os.File, error) {
	return lease.Open(filepath.Join(r.dir.Name(), r.base),
		func() (*os.File, error) { return r.dir.OpenFile(r.base, flag|openFlags, 0) })
}

func notRegular(mode fs.FileMode) error {
	kind := "special file"
	switch {
	case mode.IsDir():
		kind = "directory"
	case mode&fs.ModeSymlink != 0:
		kind = "symbolic link (write to its target instead)"
	case mode&fs.ModeNamedPipe != 0:
		kind = "FIFO"
	case mode&fs.ModeSocket != 0:
		kind = "socket"
	case mode&fs.ModeDevice != 0:
		kind = "device"
	}
	return fmt.Errorf("it is a %s, not a regular file", kind)
}

// create creates a file that did not exist.
func (r *replacement) create() (Outcome, error) {
	mode := r.Mode
	if mode == 0 {
		mode = DefaultMode
	}
	t := r.newTemp()
	defer t.discard()
	err := t.write(r.content, mode)
	if err == nil {
		err = t.close(r.Sync)
	}
	if err == nil {
		err = r.place(t)
	}
	if err != nil {
		return Outcome{}, r.failed("create", err)
	}
	return Outcome{Created: true, Warning: r.syncDir()}, nil
}

// place gives the temporary file its name, unless that is in use by now. If the file system supports neither a rename
// that fails then nor hard links, place only checks before the rename.
func (r *replacement) place(t *temp) error {
	err := renameNew(r.handle, t.name, r.base)
	if err == nil {
		t.gone = true
		return nil
	}
	if errors.Is(err, errors.ErrUnsupported) {
		err = r.dir.Link(t.name, r.base)
	}
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, look := r.dir.Lstat(r.base); !errors.Is(look, fs.ErrNotExist) {
		return fs.ErrExist
	}
	if err := renameIn(r.dir, t.name, r.base); err != nil {
		return err
	}
	t.gone = true
	return nil
}

// update replaces the current file, by a rename if that keeps its attributes.
func (r *replacement) update() (Outcome, error) {
	if err := checkWritable(r.handle, r.base); err != nil {
		return Outcome{}, r.failed("write", err)
	}
	var err error
	if r.attrs, err = readAttrs(r.current); err != nil {
		return Outcome{}, r.failed("read the attributes of", err)
	}
	if r.attrs.links > 1 && !r.BreakLinks {
		return r.inPlace(fmt.Sprintf("it has %d hard links", r.attrs.links))
	}
	if r.hold.busy {
		return r.inPlace("another program has it open for writing")
	}
	t := r.newTemp()
	defer t.discard()
	why, err := r.byRename(t)
	switch {
	case err != nil:
		return Outcome{}, r.failed("write", err)
	case why != "":
		t.discard()
		return r.inPlace(why)
	}
	warning, err := r.appendTail(catchUpFor)
	if err != nil {
		return Outcome{}, fmt.Errorf("write %s: %w", r.path(), err)
	}
	return Outcome{Warning: errors.Join(warning, r.syncDir())}, nil
}

// keepError says which attribute a new file cannot be given.
type keepError struct {
	what string
	err  error
}

func (e *keepError) Error() string { return fmt.Sprintf("its %s cannot be set: %v", e.what, e.err) }
func (e *keepError) Unwrap() error { return e.err }

// byRename replaces the current file by the temporary one, unless that is impossible or would lose attributes. Then
// it returns the reason, and the current file is unchanged.
func (r *replacement) byRename(t *temp) (why string, err error) {
	err = t.write(r.content, tempMode)
	if t.file == nil && isAny(err, syscall.EACCES, syscall.EPERM, syscall.EROFS) {
		return "its directory cannot be written", nil
	}
	if err != nil {
		return "", err
	}
	var kept *keepError
	if err := r.attrs.apply(t.file); errors.As(err, &kept) {
		return kept.Error(), nil
	} else if err != nil {
		return "", err
	}
	if err := t.close(r.Sync); err != nil {
		return "", err
	}
	if err := r.undisturbed(); err != nil {
		return "", err
	}
	if err = r.swap(t); err == nil {
		return "", nil
	}
	if isAny(err, syscall.EBUSY, syscall.EXDEV, syscall.EPERM, syscall.EACCES) && !errors.Is(err, ErrOvertaken) {
		return "it cannot be renamed over: " + unwrapPath(err).Error(), nil
	}
	return "", err
}

func (r *replacement) syncDir() error {
	if !r.Sync {
		return nil
	}
	if err := syncDir(r.handle); err != nil {
		return fmt.Errorf("it may not outlast a loss of power: sync the directory %s: %w", r.dirPath(), unwrapPath(err))
	}
	return nil
}

// path names the file in errors.
func (r *replacement) path() string { return filepath.Join(r.dirPath(), r.base) }

// dirPath returns the current path of the directory: the path by which it was opened, unless it was moved since. The
// kernel could always be asked, but two stats take less time.
func (r *replacement) dirPath() string {
	if path := r.dir.Name(); filepath.IsAbs(path) {
		named, err := os.Lstat(path)
		opened, opErr := r.handle.Stat()
		if err == nil && opErr == nil && os.SameFile(named, opened) {
			return path
		}
	}
	return dirPath(r.handle)
}

// failed explains an error of the call.
func (r *replacement) failed(op string, err error) error {
	state := "The file is unchanged"
	if r.current == nil {
		state = "Nothing was written"
	}
	err = unwrapPath(err)
	if r.current != nil && !errors.Is(err, ErrOvertaken) && !r.isNamed(r.was) {
		err = fmt.Errorf("%w: %w", err, ErrOvertaken)
	}
	return fmt.Errorf("%s %s: %w. %s%s", op, r.path(), err, state, Advice(err))
}

// unwrapPath removes the operation and the name of a temporary file from an error of
// the os package: the reader does not know them.
func unwrapPath(err error) error {
	switch e := err.(type) {
	case *fs.PathError:
		return e.Err
	case *os.LinkError:
		return e.Err
	case *os.SyscallError:
		return e.Err
	}
	return err
}

// Advice returns a text on what to do about an error, to be added to it; "" if there is none.
func Advice(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return "; free some space on that file system and try again"
	case errors.Is(err, syscall.EDQUOT):
		return "; the disk quota is used up: free some space and try again"
	case errors.Is(err, syscall.EROFS):
		return "; the file system is mounted read-only"
	case errors.Is(err, syscall.EPERM):
		return "; no permission lets this user write it: it may be immutable or only be appended to (lsattr shows an i or " +
			"an a, which a person takes away with chattr -i or -a), or another's in a directory where only owners may " +
			"replace files"
	case errors.Is(err, fs.ErrPermission):
		return "; this user may not write it: change its permissions (chmod u+w) or its owner if it should be written"
	}
	return ""
}

func isAny(err error, targets ...syscall.Errno) bool {
	for _, t := range targets {
		if errors.Is(err, t) {
			return true
		}
	}
	return false
}
