package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"
)

const (
	// quietFor is how long a call may take before its progress is shown.
	quietFor = time.Second
	// progressWidth is the length of the progress line, in characters: a terminal is seldom narrower.
	progressWidth = 79
)

// A progress shows the progress of a call on one line of a terminal.
type progress struct {
	w       io.Writer
	tool    string
	began   time.Time
	stopped chan struct{}
	ended   chan struct{}

	mu   sync.Mutex
	last string // the last line that the call wrote
}

// showProgress starts to show the progress of a call, if w is a terminal. The nil progress shows nothing.
func showProgress(w io.Writer, tool string) *progress {
	f, ok := w.(*os.File)
	if !ok || !isTerminal(f) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	p := &progress{w: w, tool: tool, began: time.Now(), stopped: make(chan struct{}),
		ended: make(chan struct{})}
	go p.run()
	return p
}

func (p *progress) run() {
	defer close(p.ended)
	tick := time.NewTicker(quietFor)
	defer tick.Stop()
	shown := false
	for {
		select {
		case <-tick.C:
			fmt.Fprint(p.w, "\r\x1b[K"+p.line(time.Since(p.began)))
			shown = true
		case <-p.stopped:
			if shown {
				fmt.Fprint(p.w, "\r\x1b[K")
			}
			return
		}
	}
}

// line returns the text that is shown after a time.
func (p *progress) line(since time.Duration) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := fmt.Sprintf("%s %s", p.tool, since.Truncate(time.Second))
	if p.last != "" {
		text += "  " + p.last
	}
	if r := []rune(text); len(r) > progressWidth {
		text = string(r[:progressWidth-1]) + "…"
	}
	return coloured(p.w, faint, text)
}

// told receives the last lines of the call's output. It drops control characters.
func (p *progress) told(lines string) {
	lines = strings.TrimSpace(lines)
	last := strings.Map(func(r rune) rune {
		if r == '\t' {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, lines[strings.LastIndexByte(lines, '\n')+1:])
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = last
}

// callback returns the function that receives the progress of the call; nil if nothing is shown.
func (p *progress) callback() func(string) {
	if p == nil {
		return nil
	}
	return p.told
}

// stop removes the line.
func (p *progress) stop() {
	if p != nil {
		close(p.stopped)
		<-p.ended
	}
}
