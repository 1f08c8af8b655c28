//go:build unix

package main

import (
	"bytes"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A terminal answers some of what a client prints (reports of its state, its title, its name) as if a person typed
// the answer, and reports the mouse if a client asks for that. What arrives after the client has ended, or while it
// is suspended, would be read by the user's shell, which runs it as commands.

const (
	// resetTerminal ends a control sequence that was begun (CAN), and the modes in which a terminal sends more than
	// keys: the mouse, the focus, marks around pasted text.
	resetTerminal = "\x18\x1b[?1000;1002;1003;1004;1005;1006;1015;2004l"
	// askTerminal asks for the state of the terminal (DSR). Terminals answer in order.
	askTerminal, terminalAnswer = "\x1b[5n", "\x1b[0n"
	// answerTime is how long a terminal may take for the answer, over a slow connection.
	answerTime = time.Second
)

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
	quiet  atomic.Pointer[chan struct{}] // nil while the client gets it; else closed at the answer of the terminal
	last   []byte                        // of what nothing gets
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
	if bytes.Contains(k.last, []byte(terminalAnswer)) {
		select {
		case <-*quiet:
		default:
			close(*quiet)
		}
	}
	k.last = bytes.Clone(k.last[max(0, len(k.last)-len(terminalAnswer)+1):])
	return len(p), nil
}

// leave has the terminal give all answers, and drops them. The client must not run. Its output waits until enter.
func (k *keyboard) leave(s *screen) {
	s.mu.Lock()
	answered := make(chan struct{})
	k.quiet.Store(&answered)
	_ = k.client.SetWriteDeadline(time.Now())
	if !s.asked || os.Getenv("TERM") == "dumb" { // which would show the question
		return
	}
	if _, err := io.WriteString(s.terminal, resetTerminal+askTerminal); err != nil {
		return
	}
	select {
	case <-answered:
	case <-time.After(answerTime):
	}
}

// enter gives the terminal to the client again.
func (k *keyboard) enter(s *screen) {
	_ = k.client.SetWriteDeadline(time.Time{})
	k.quiet.Store(nil)
	s.mu.Unlock()
}
