// Package audit records calls: it writes one line of JSON for each, refusals included, and tells observers of them.
//
// A log that was asked for and cannot be written refuses the calls: nothing happens that is not on record.
// The contents of files and results are never logged, only paths, commands and sizes.
//
// Several hosts may write to one log, and any of them may rotate it. Each line is appended, in one piece, to the file that the path
// named a moment before: while the call ran, and no longer ago than [sharedLook]. If the file is renamed in that moment it still gets
// the line, as if it had been written before the rotation. A host that rotates holds a lock on the file, against other hosts.
// Another program may rotate too, by renaming or by truncating.
//
// Its Go API is not stable.
package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/guard/privatefile"
)

// The phases of a call.
const (
	PhaseAsked    = "asked"    // a person must approve it
	PhaseApproved = "approved" // by a person, a hook or the classifier
	PhaseRefused  = "refused"  // by a person or a hook
	PhaseExpired  = "expired"  // no answer came in time
)

// EventExec is a program that a command has come to start, which Command names: it was refused, or a person was asked.
const EventExec = "exec"

// Bounds of a record: what callers choose must not fill the log.
const (
	// maxText bounds each text in a record, in bytes.
	maxText = 4096
	// maxPaths bounds how many files a record names as read, and as written; how many there were beyond it is said.
	maxPaths = 64
	// maxPhases bounds the phases of a record; later ones are left out.
	maxPhases = 16
)

// reserveSize is how much space is reserved ahead of a call, in bytes: enough for a record of common texts, so that a full
// disk refuses a call instead of losing its record.
const reserveSize = 64 << 10

// enough is the reserved room that will do for one more record, in bytes.
const enough = 4 * maxText

// sharedLook is for how long a look at the file's name serves the records of other calls too, if they had come in before it: calls that
// run concurrently end concurrently. What was done to the file before a call came in is seen by its record in any case.
const sharedLook = time.Millisecond

// mostMoves is how often the file may be found moved away in a row before that is an error.
const mostMoves = 1000

// A Config says where a log is, and when its file gives way to a new one.
type Config struct {
	// Path names the file that is written.
	Path string
	// MaxSize is how large the file may grow, in bytes; the line that would not fit goes to a new file. Zero
	// never rotates. Less than [MinSize] is taken for MinSize.
	MaxSize int64
	// Keep is how many earlier files are kept next to it, as Path.1 (the youngest), Path.2 and so on. Less than
	// one is taken for one: what was just written is never thrown away.
	Keep int
	// Optional says that calls go on without a record if it cannot be written: then only a record itself looks whether the file is
	// still there.
	Optional bool
	// Exposed says that tools or commands can write where the file lies, so that something else may be put in its place: it is
	// then opened by [privatefile.Append].
	Exposed bool
	// Warn is called when a rotation fails; the log then grows on. Nil: it is not called.
	Warn func(error)
}

// Sizes of a log.
const (
	// DefaultMaxSize and DefaultKeep hold some two million records of common size in 576 MiB.
	DefaultMaxSize = 64 << 20
	DefaultKeep    = 8
	// MinSize leaves room for the longest record and what is reserved ahead.
	MinSize = reserveSize
)

// A Log appends records to a file. The nil Log records nothing.
type Log struct {
	cfg Config

	asked atomic.Uint64 // how often Ready was called

	mu       sync.Mutex
	looked   uint64 // how many of them the last look came after
	unready  error  // what it found
	file     *os.File
	opened   os.FileInfo // of file, when it was opened
	named    time.Time   // when the path was last looked at, and named it
	regular  bool        // it is a file with a size, which can be locked and rotated
	size     int64       // when last looked at
	reserved int64       // bytes of reserved room not used yet
	failures uint64
	closed   bool   // for good
	torn     bool   // the last line was cut short: the next one begins anew
	broken   string // the failure to rotate that was reported last
}

// Open opens or creates the log file, readable by its owner only. Missing parent directories are created.
func Open(cfg Config) (*Log, error) {
	if cfg.MaxSize > 0 {
		cfg.MaxSize, cfg.Keep = max(cfg.MaxSize, MinSize), max(cfg.Keep, 1)
	}
	if err := os.MkdirAll(filepath.Dir(cfg.Path), 0o700); err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(cfg.Path)); err == nil && cfg.Exposed {
		cfg.Path = filepath.Join(dir, filepath.Base(cfg.Path))
	} else if whole, err := filepath.EvalSymlinks(cfg.Path); err == nil && !cfg.Exposed {
		cfg.Path = whole // a rotation must move the file, not a link to it
	}
	l := &Log{cfg: cfg}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.open(); err != nil {
		return nil, err
	}
	return l, nil
}

// Path is where the records go.
func (l *Log) Path() string {
	if l == nil {
		return ""
	}
	return l.cfg.Path
}

// Failures counts the calls that could not be recorded, or were refused because they could not be.
func (l *Log) Failures() uint64 {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failures
}

func (l *Log) open() error {
	if err := os.MkdirAll(filepath.Dir(l.cfg.Path), 0o700); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	// Opening a pipe must not wait for a reader: no signal would end that wait.
	open := func(path string) (*os.File, error) {
		return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NONBLOCK, 0o600)
	}
	if l.cfg.Exposed {
		open = privatefile.Append
	}
	f, err := open(l.cfg.Path)
	if errors.Is(err, syscall.ENXIO) {
		return fmt.Errorf("audit log: %s is a pipe without a reader: start its reader first", l.cfg.Path)
	}
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(fmt.Errorf("audit log: %w", err), f.Close())
	}
	l.file, l.opened, l.regular, l.size, l.reserved = f, info, info.Mode().IsRegular(), info.Size(), 0
	l.named = time.Time{}
	return nil
}

// Ready makes sure that the record of the call about to run can be written: that the file is still there,
// and that the disk has room for it. The error says why the call must be refused. Calls that come while one
// looks are served together by the next look.
func (l *Log) Ready() error {
	if l == nil {
		return nil
	}
	turn := l.asked.Add(1)
	if l.readyAsItIs() {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.looked < turn {
		l.looked = l.asked.Load()
		l.unready = l.ready()
	}
	if l.unready != nil {
		l.failures++
	}
	return l.unready
}

// Usable reports why another record could not be written, nil if it could. Unlike [Log.Ready] it looks at the file also where no call is
// refused for what is found, and so it finds what calls went on without. A nil log is one that could not be opened.
func (l *Log) Usable() error {
	if l == nil {
		return errors.New("there is no audit log")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ready()
}

// readyAsItIs reports that nothing has to be done for another record: the path names the open file, and there is room. Calls look
// concurrently: this says nothing of the moment of the record, before which it is looked at again. Where no one would be refused
// for what is found, what is known of the file must do.
func (l *Log) readyAsItIs() bool {
	l.mu.Lock()
	opened, size := l.opened, l.size
	usable := l.file != nil && l.regular && !l.closed && l.reserved >= enough
	l.mu.Unlock()
	if !usable || l.cfg.Optional {
		return usable
	}
	named, err := l.stat()
	if err != nil || !os.SameFile(opened, named) || named.Size() < size {
		return false
	}
	return l.cfg.MaxSize == 0 || named.Size() == 0 || named.Size()+enough <= l.cfg.MaxSize
}

// stat looks at what the path names.
func (l *Log) stat() (os.FileInfo, error) {
	if l.cfg.Exposed {
		return os.Lstat(l.cfg.Path)
	}
	return os.Stat(l.cfg.Path)
}

func (l *Log) ready() error {
	if err := l.enter(enough); err != nil {
		return err
	}
	if l.reserved >= enough {
		return nil
	}
	if err := reserve(l.file, reserveSize); err != nil {
		return fmt.Errorf("audit log %s: %w", l.cfg.Path, err)
	}
	l.reserved = reserveSize
	return nil
}

// Write appends one record.
func (l *Log) Write(r Record) error {
	if l == nil {
		return nil
	}
	line := r.Clipped().appendTo(make([]byte, 0, usualLine))
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.append(append(line, '\n'), r.Time); err != nil {
		l.failures++
		return err
	}
	return nil
}

// append writes the line of a call that came in then.
func (l *Log) append(line []byte, then time.Time) error {
	if !l.seenSince(then) || l.full(int64(len(line))) {
		if err := l.enter(int64(len(line))); err != nil {
			return err
		}
	}
	if l.torn {
		line = append([]byte{'\n'}, line...)
	}
	l.reserved -= int64(len(line))
	if n, err := l.file.Write(line); err != nil {
		l.torn = l.torn || n > 0
		l.close() // the next record tries again from the start
		return fmt.Errorf("audit log %s: %w", l.cfg.Path, err)
	}
	l.torn = false
	l.size += int64(len(line))
	return nil
}

// seenSince reports whether the open file was seen to be the one that the path names, after that time and a moment ago.
func (l *Log) seenSince(then time.Time) bool {
	return l.file != nil && l.regular && !then.IsZero() && l.named.After(then) && time.Since(l.named) <= sharedLook
}

// enter makes sure that the open file is the one that the path names and has room for so many bytes more.
func (l *Log) enter(room int64) error {
	if l.closed {
		return errors.New("audit log: it is closed")
	}
	for range mostMoves {
		if l.file == nil {
			if err := l.open(); err != nil {
				return err
			}
		}
		if !l.regular {
			return nil
		}
		if l.moved() {
			l.close()
			continue
		}
		if !l.full(room) {
			return nil
		}
		rotated, err := l.rotate(room)
		l.warn(err)
		if !rotated {
			return nil // it grows on
		}
	}
	return fmt.Errorf("audit log %s: it is moved away as fast as it is opened", l.cfg.Path)
}

// moved reports whether the path no longer names the open file, as after a rotation. It notes the file's size:
// one that has shrunk was truncated by a program outside, which gave the reserved room back.
func (l *Log) moved() bool {
	now := time.Now()
	named, err := l.stat()
	if err != nil || !os.SameFile(l.opened, named) {
		return true
	}
	if named.Size() < l.size {
		l.reserved = 0
	}
	l.size, l.named = named.Size(), now
	return false
}

// full reports whether the file would grow beyond its bound.
func (l *Log) full(room int64) bool {
	return l.cfg.MaxSize > 0 && l.size > 0 && l.size+room > l.cfg.MaxSize
}

// warn tells of a failure, once until it changes.
func (l *Log) warn(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != l.broken && err != nil && l.cfg.Warn != nil {
		l.cfg.Warn(err)
	}
	l.broken = text
}

// Close closes the file.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return l.close()
}

func (l *Log) close() error {
	if l.file == nil {
		return nil
	}
	if l.regular {
		unlock(l.file) // a child that was forked meanwhile may hold the file a moment longer, but not the lock
	}
	err := l.file.Close()
	l.file = nil
	return err
}

// exists reports whether a name is taken. What cannot be looked at counts as taken.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
