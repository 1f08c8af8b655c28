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

// A terminal answers some of what a client prints (reports of its state, its title, its name) as if a person typed
// the answer, and reports the mouse if a client asks for that. What arrives after the client has ended, or while it
// is suspended, would be read by the user's shell, which runs it as commands.

const (
	// resetTerminal ends a control sequence that was begun (CAN), and the modes in which a terminal sends more than
	// keys: the mouse, the focus, marks around pasted text.
	resetTerminal = "\x18\x1b[?1000;1002;1003;1004;1005;1006;1015;2004l"
	// saveCursor and restoreCursor enclose the questions of whereIsCursor, and absoluteRows has rows counted from the top.
	saveCursor, absoluteRows, restoreCursor = "\x1b7", "\x1b[?6l", "\x1b8"
	// moves is how many places whereIsCursor asks about: a client cannot try all rows and columns of so many.
	moves = 5
	// usualRows and usualColumns are the size of a terminal that tells none.
	usualRows, usualColumns = 24, 80
	// leastPlaces is how many places a terminal must have, so that they cannot be guessed. A smaller one is taken for one
	// of usual size, and never gives the answer.
	leastPlaces = 100
	// answerTime is how long a terminal may take for the answer, over a slow connection.
	answerTime = time.Second
)

// whereIsCursor returns what moves the cursor to random places and asks at each where it is (CPR), and the answer.
// All terminals know the question, and answer in order. A client that prints a question of its own cannot have the
// terminal give this answer before, because it does not know the places.
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
	asked    bool // it was sent something that it may answer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = s.asked || slices.ContainsFunc(p, isControl)
	return s.terminal.Write(p)
}

// isControl reports whether a byte can begin what a terminal answers: ENQ, ESC, or a control character of 8 bits, in
// UTF-8 too.
func isControl(b byte) bool { return b == 0x05 || b == 0x1b || b >= 0x80 && b < 0xa0 }

// A keyboard passes on what the user's terminal sends, to the client or to nothing.
type keyboard struct {
	client *os.File
	quiet  atomic.Pointer[awaited] // nil while the client gets it
	last   []byte                  // of what nothing gets
}

// An awaited is the latest answer of a terminal.
type awaited struct {
	answer string
	came   chan struct{} // closed when it is there
}

// Write never fails, so that the terminal is read for as long as it is there.
func (k *keyboard) Write(p []byte) (int, error) {
	quiet := k.quiet.Load()
	if quiet == nil {
		_, _ = k.client.Write(p) // it fails when the client has ended, or is suspended with its input full
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

// leave has the terminal give all answers, and drops them. The client must not run. Its output waits until enter.
func (k *keyboard) leave(s *screen) {
	s.mu.Lock()
	question, answer := whereIsCursor(s.terminal)
	answered := &awaited{answer, make(chan struct{})}
	k.quiet.Store(answered)
	_ = k.client.SetWriteDeadline(time.Now())
	if !s.asked || os.Getenv("TERM") == "dumb" { // which would show the question
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
