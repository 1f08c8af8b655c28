// Package audit records calls: it writes one line of JSON for each, refusals included, and tells observers of them.
//
// A log that was asked for and cannot be written refuses the calls: nothing happens that is not on record.
// The contents of files and results are never logged, only paths, commands and sizes.
//
// Several hosts may write to one log, and any of them may rotate it. Each line is appended, in one piece, to the file
// that the path named a moment before: while the call ran, and no longer ago than [sharedLook]. If the file is
// renamed in that moment it still gets the line, as if it had been written before the rotation. A host that rotates
// holds a lock on the file, against other hosts. Another program may rotate too, by renaming or by truncating.
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

// EventExec records a program that a command tried to start, named by Command. It was refused, or a person was asked.
const EventExec = "exec"

// Limits of a record, so that callers cannot fill the log.
const (
	// maxText bounds each text in a record, in bytes.
	maxText = 4096
	// maxPaths bounds how many files a record names as read, and as written. The record says how many more there were.
	maxPaths = 64
	// maxPhases bounds the phases of a record; later ones are left out.
	maxPhases = 16
)

// reserveSize is how much space is reserved before a call, in bytes. It is enough for a record of typical texts, so
// that a full disk refuses a call instead of losing its record.
const reserveSize = 64 << 10

// enough is the reserved space that suffices for one more record, in bytes.
const enough = 4 * maxText

// sharedLook is how long a check of the file's name also serves the records of other calls that had arrived before it:
// concurrent calls end at about the same time. The record of a call always takes into account what was done to the file
// before the call arrived.
const sharedLook = time.Millisecond

// mostMoves is how often in a row the file may be found renamed before that is an error.
const mostMoves = 1000

// A Config configures a log and its rotation.
type Config struct {
	// Path names the file that is written.
	Path string
	// MaxSize is the size at which the file is rotated, in bytes: a line that would exceed it goes to a new file. Zero
	// disables rotation. Values below [MinSize] are raised to MinSize.
	MaxSize int64
	// Keep is how many earlier files are kept next to it, as Path.1 (the newest), Path.2 and so on. Values below one
	// are raised to one, so that fresh records are never discarded.
	Keep int
	// Optional says that calls continue without a record if it cannot be written. Only writing a record then checks
	// whether the file is still there.
	Optional bool
	// Exposed says that tools or commands can write to the directory of the file and so replace the file. It is then
	// opened by [privatefile.Append].
	Exposed bool
	// Warn is called when a rotation fails; the file then keeps growing. Nil: it is not called.
	Warn func(error)
}

// Sizes of a log.
const (
	// DefaultMaxSize and DefaultKeep hold about two million records of typical size in 576 MiB.
	DefaultMaxSize = 64 << 20
	DefaultKeep    = 8
	// MinSize leaves space for the longest record and the reserve.
	MinSize = reserveSize
)

// A Log appends records to a file. The nil Log records nothing.
type Log struct {
	cfg Config

	asked atomic.Uint64 // number of calls of Ready

	mu       sync.Mutex
	looked   uint64 // the value of asked at the last check
	unready  error  // the result of that check
	file     *os.File
	opened   os.FileInfo // of file, when it was opened
	named    time.Time   // when the path was last found to name the file
	regular  bool        // a regular file, which can be locked and rotated
	size     int64       // as of the last check
	reserved int64       // reserved bytes that are still unused
	failures uint64
	closed   bool   // for good
	torn     bool   // the last line is incomplete, so the next record starts a new line
	broken   string // the last reported rotation failure
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

// Path returns the path of the log file.
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

// Ready makes sure that the record of the next call can be written: the file is still there, and the disk has space. It
// returns an error if the call must be refused. Calls that arrive during a check share the next one.
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

// Usable returns an error if another record cannot be written. Unlike [Log.Ready] it checks the file even if the log is
// optional, and so finds failures despite which calls continue. A nil log is one that could not be opened.
func (l *Log) Usable() error {
	if l == nil {
		return errors.New("there is no audit log")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ready()
}

// readyAsItIs reports whether another record needs no preparation: the path names the open file, and there is space.
// Calls check concurrently, so the result may be outdated when the record is written, which checks again. If the log is
// optional, the known state of the file must suffice.
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

// stat returns the file that the path names.
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
	line, err := r.Clipped().line()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		err = l.append(line, r.Time)
	}
	if err != nil {
		l.failures++
		return err
	}
	return nil
}

// append writes the line of a call that arrived at the given time.
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
		l.close() // the next record starts over
		return fmt.Errorf("audit log %s: %w", l.cfg.Path, err)
	}
	l.torn = false
	l.size += int64(len(line))
	return nil
}

// seenSince reports whether the path was found to name the open file after the given time and within the last
// [sharedLook].
func (l *Log) seenSince(then time.Time) bool {
	return l.file != nil && l.regular && !then.IsZero() && l.named.After(then) && time.Since(l.named) <= sharedLook
}

// enter makes sure that the path names the open file and that the file has space for room more bytes.
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
			return nil // the file keeps growing
		}
	}
	return fmt.Errorf("audit log %s: it is moved away as fast as it is opened", l.cfg.Path)
}

// moved reports whether the path no longer names the open file, for example after a rotation. It records the file's
// size. A file that has shrunk was truncated by another program, which released the reserved space.
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

// full reports whether the file would exceed its maximum size.
func (l *Log) full(room int64) bool {
	return l.cfg.MaxSize > 0 && l.size > 0 && l.size+room > l.cfg.MaxSize
}

// warn reports a failure once, until it changes.
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
		unlock(l.file) // a child forked in the meantime may hold the file open for a moment, but not the lock
	}
	err := l.file.Close()
	l.file = nil
	return err
}

// exists reports whether a name is taken, or cannot be examined.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
