// Package audit writes one line of JSON for each call, refusals included.
//
// A log that was asked for and cannot be written refuses the calls: what is not on record does not happen.
// The contents of files and results are never logged, only paths, commands and sizes.
package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// A Record is one call.
type Record struct {
	Time      time.Time `json:"time"`
	Principal string    `json:"principal"`
	Scope     string    `json:"scope"`
	Tool      string    `json:"tool"`
	Reads     []string  `json:"reads,omitempty"`
	Writes    []string  `json:"writes,omitempty"`
	Command   string    `json:"command,omitempty"`
	// Verdict is allow, ask or deny; empty when the call ended before it was judged.
	Verdict string `json:"verdict,omitempty"`
	Rule    string `json:"rule,omitempty"`
	Source  string `json:"source,omitempty"`
	// Millis is how long the call took, waiting included, in milliseconds.
	Millis float64 `json:"duration_ms"`
	// Bytes is the size of the text that was returned.
	Bytes int    `json:"result_bytes"`
	Error string `json:"error,omitempty"`
}

// MaxText bounds a command or an error in a record, in bytes.
const MaxText = 4096

// Room is how much space is reserved ahead of a call, in bytes: enough for any one record, so that a full
// disk refuses a call instead of losing its record.
const Room = 64 << 10

// A Log appends records to a file. The nil Log records nothing.
type Log struct {
	path string

	mu       sync.Mutex
	file     *os.File
	reserved int64     // bytes of reserved room not used yet
	looked   time.Time // when the path was last seen to name the file
}

// lookAgain is how long a log is believed to be still where it was. A rotation is noticed this much later.
const lookAgain = time.Second

// Open opens or creates the log file, readable by its owner only. Missing parent directories are created.
func Open(path string) (*Log, error) {
	l := &Log{path: path}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.open(); err != nil {
		return nil, err
	}
	return l, nil
}

// Path is where the records go.
func (l *Log) Path() string { return l.path }

func (l *Log) open() error {
	if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	l.file, l.reserved = f, 0
	return nil
}

// Ready makes sure that the record of the call about to run can be written: that the file is still there,
// and that the disk has room for it. The error says why the call must be refused.
func (l *Log) Ready() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); l.file == nil || now.Sub(l.looked) > lookAgain {
		if l.file == nil || l.moved() {
			l.close()
			if err := l.open(); err != nil {
				return err
			}
		}
		l.looked = now
	}
	if l.reserved >= MaxText*4 {
		return nil
	}
	if err := reserve(l.file, Room); err != nil {
		return fmt.Errorf("audit log %s: %w", l.path, err)
	}
	l.reserved = Room
	return nil
}

// moved reports whether the path no longer names the open file, as after a rotation.
func (l *Log) moved() bool {
	open, err := l.file.Stat()
	if err != nil {
		return true
	}
	named, err := os.Stat(l.path)
	return err != nil || !os.SameFile(open, named)
}

// Write appends one record.
func (l *Log) Write(r Record) error {
	if l == nil {
		return nil
	}
	r.Command, r.Error = clip(r.Command), clip(r.Error)
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return errors.New("audit log: it is closed")
	}
	l.reserved -= int64(len(line)) + 1
	if _, err := l.file.Write(append(line, '\n')); err != nil {
		l.close() // the next call tries again from the start
		return fmt.Errorf("audit log %s: %w", l.path, err)
	}
	return nil
}

// Close closes the file.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.close()
}

func (l *Log) close() error {
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

func clip(s string) string {
	if len(s) > MaxText {
		return s[:MaxText] + "…"
	}
	return s
}
