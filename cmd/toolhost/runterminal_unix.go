//go:build unix

package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A terminal answers some sequences that a client prints, such as requests for its state or title, as if a person
// typed the answer. It also reports the mouse if a client asks for it. Input that arrives after the client has ended,
// or while it is suspended, would be read by the user's shell, which would run it as commands.

const (
	// resetTerminal cancels an unfinished control sequence (CAN), and ends the modes in which a terminal sends more
	// than keys: mouse, focus and bracketed paste.
	resetTerminal = "\x18\x1b[?1000;1002;1003;1004;1005;1006;1015;2004l"
	// saveCursor and restoreCursor enclose the questions of whereIsCursor, and absoluteRows has rows counted from the top.
	saveCursor, absoluteRows, restoreCursor = "\x1b7", "\x1b[?6l", "\x1b8"
	// moves is how many places whereIsCursor asks about: a client cannot try all rows and columns of so many.
	moves = 5
	// usualRows and usualColumns are the size of a terminal that does not report one.
	usualRows, usualColumns = 24, 80
	// leastPlaces is how many places a terminal must have, so that they cannot be guessed. A smaller terminal is
	// treated as one of the usual size, and never gives the expected answer.
	leastPlaces = 100
	// answerTime is how long a terminal may take for the answer, over a slow connection.
	answerTime = time.Second
)

// whereIsCursor returns a question, and the answer to it: it moves the cursor to random places and asks for the
// position at each (CPR). All terminals know the question, and answer in order. A client cannot make the terminal
// give this answer, because it does not know the places.
func whereIsCursor(terminal *os.File) (question, answer string) {
	rows, columns := usualRows, usualColumns
	size, err := unix.IoctlGetWinsize(int(terminal.Fd()), unix.TIOCGWINSZ)
	if err == nil && int(size.Row)*int(size.Col) >= leastPlaces {
		rows, columns = int(size.Row), int(size.Col)
	}
	question = saveCursor + absoluteRows
	for range moves {
		row, column := 1+rand.IntN(rows), 1+rand.IntN(columns)
		question += fmt.Sprintf("\x1b[%d;%dH\x1b[6n", row, column)
		answer += fmt.Sprintf("\x1b[%d;%dR", row, column)
	}
	return question + restoreCursor, answer
}

// A screen is the user's terminal as the client writes it.
type screen struct {
	terminal *os.File
	mu       sync.Mutex
	asked    bool // the client sent something that the terminal may answer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = s.asked || slices.ContainsFunc(p, isControl)
	return s.terminal.Write(p)
}

// isControl reports whether a byte can begin a sequence that a terminal answers: ENQ, ESC, or a control character of
// 8 bits, in UTF-8 too.
func isControl(b byte) bool { return b == 0x05 || b == 0x1b || b >= 0x80 && b < 0xa0 }

// A keyboard passes input of the user's terminal to the client, or drops it.
type keyboard struct {
	client *os.File
	quiet  atomic.Pointer[awaited] // nil while the client gets the input
	last   []byte                  // the end of the dropped input
}

// An awaited is the answer after which a terminal has answered everything.
type awaited struct {
	answer string
	came   chan struct{} // closed when the answer has arrived
}

// Write never fails, so that the terminal is read for as long as it is there.
func (k *keyboard) Write(p []byte) (int, error) {
	quiet := k.quiet.Load()
	if quiet == nil {
		_, _ = k.client.Write(p) // fails if the client has ended, or is suspended and its input is full
		k.last = nil
		return len(p), nil
	}
	k.last = append(k.last, p...)
	if bytes.Contains(k.last, []byte(quiet.answer)) {
		select {
		case <-quiet.came:
		default:
			close(quiet.came)
		}
	}
	k.last = bytes.Clone(k.last[max(0, len(k.last)-len(quiet.answer)+1):])
	return len(p), nil
}

// leave makes the terminal give all pending answers, and drops them. The client must not run. Its output waits until
// enter is called.
func (k *keyboard) leave(s *screen) {
	s.mu.Lock()
	question, answer := whereIsCursor(s.terminal)
	answered := &awaited{answer, make(chan struct{})}
	k.quiet.Store(answered)
	_ = k.client.SetWriteDeadline(time.Now())
	if !s.asked || os.Getenv("TERM") == "dumb" { // a dumb terminal would show the question
		return
	}
	if _, err := io.WriteString(s.terminal, resetTerminal+question); err != nil {
		return
	}
	select {
	case <-answered.came:
	case <-time.After(answerTime):
	}
}

// enter gives the terminal to the client again.
func (k *keyboard) enter(s *screen) {
	_ = k.client.SetWriteDeadline(time.Time{})
	k.quiet.Store(nil)
	s.mu.Unlock()
}
