package shell

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	// progressLines and progressBytes bound what a progress report shows.
	progressLines = 5
	progressBytes = 2 << 10

	// floodAfter is how much of one output is cleaned as it comes. What follows is
	// only kept as a raw tail and cleaned at the end: cleaning runs at about
	// 500 MB/s, and a flood must not occupy the server.
	floodAfter = 64 << 20
)

// A collector takes the output of one command: it counts, cleans, keeps head and
// tail, and spills the whole.
type collector struct {
	mu    sync.Mutex
	bytes int64
	lines int
	clean cleaner
	win   window
	spill spill
	flood *ring // raw end of an output longer than cleanMax

	cleanMax int64 // how much is cleaned as it comes
}

func newCollector(cfg Config, open Spill) *collector {
	c := &collector{
		win:      window{headMax: cfg.Head, tail: ring{max: cfg.Tail}},
		cleanMax: floodAfter,
		spill:    spill{open: open, left: cfg.SpillMax, max: cfg.SpillMax},
	}
	c.clean = newCleaner(c.keep)
	return c
}

// Write takes more output.
func (c *collector) Write(p []byte) {
	if len(p) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	room := max(c.cleanMax-c.bytes, 0)
	c.bytes += int64(len(p))
	c.lines += bytes.Count(p, []byte{'\n'})
	now := p[:min(room, int64(len(p)))]
	c.clean.Write(now)
	if rest := p[len(now):]; len(rest) > 0 {
		if c.flood == nil {
			c.clean.Flush()
			c.flood = &ring{max: c.win.tail.max}
		}
		c.flood.write(rest)
	}
}

// keep takes cleaned output.
func (c *collector) keep(p []byte) {
	if !c.win.fits(len(p)) {
		// The window still holds everything so far, until the first overflow.
		c.spill.begin(c.win.head, c.win.tail.bytes())
	}
	c.spill.write(p)
	c.win.write(p)
}

// size returns how much output has come.
func (c *collector) size() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}

// lastLines returns the last lines of the output as they are now.
func (c *collector) lastLines() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var text string
	if c.flood != nil {
		text = Clean(string(lastBytes(c.flood.bytes(), progressBytes)))
	} else {
		text = string(lastBytes(c.win.end(progressBytes), progressBytes)) + string(c.clean.state())
	}
	text = strings.TrimRight(text, "\n")
	lines := strings.Split(text, "\n")
	if len(lines) > progressLines {
		lines = lines[len(lines)-progressLines:]
	}
	return string(lastBytes([]byte(strings.Join(lines, "\n")), progressBytes))
}

// result ends the collection.
func (c *collector) result() *Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flood == nil {
		c.clean.Flush()
	} else {
		c.spill.cut()
	}
	c.spill.close()
	res := &Result{
		Bytes: c.bytes, Lines: c.lines,
		Spilled: c.spill.path, SpillCut: c.spill.cutShort(), SpillErr: c.spill.err,
	}
	if c.flood != nil {
		head := wholeLines(c.win.head)
		tail := []byte(Clean(string(fromLine(c.flood.bytes()))))
		gone := c.bytes - int64(len(head)) - int64(len(tail))
		goneLines := c.lines - bytes.Count(head, []byte{'\n'}) - bytes.Count(tail, []byte{'\n'})
		res.Text, res.Cut = join(head, tail, gone, goneLines), true
		return res
	}
	res.Text, res.Cut = c.win.text()
	return res
}

// join puts the notice of what is missing between head and tail.
func join(head, tail []byte, bytes int64, lines int) string {
	var b strings.Builder
	b.Write(head)
	if len(head) > 0 && head[len(head)-1] != '\n' {
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "… %s lines / %s bytes omitted …\n", grouped(int64(max(lines, 0))), grouped(bytes))
	b.Write(tail)
	return b.String()
}

// grouped writes a number with commas between the thousands.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// wholeLines returns p up to its last newline; if there is none, up to its last
// whole character.
func wholeLines(p []byte) []byte {
	if i := bytes.LastIndexByte(p, '\n'); i >= 0 {
		return p[:i+1]
	}
	for i := len(p) - 1; i >= 0 && i >= len(p)-utf8.UTFMax; i-- {
		if utf8.RuneStart(p[i]) {
			if !utf8.FullRune(p[i:]) {
				return p[:i]
			}
			break
		}
	}
	return p
}

// fromLine returns p from the start of its second line on, because its first one
// is incomplete; if it has only one, from its first whole character.
func fromLine(p []byte) []byte {
	if i := bytes.IndexByte(p, '\n'); i >= 0 && i+1 < len(p) {
		return p[i+1:]
	}
	for i := 0; i < len(p) && i < utf8.UTFMax; i++ {
		if utf8.RuneStart(p[i]) {
			return p[i:]
		}
	}
	return p
}

// lastBytes returns the last n bytes of p, beginning with a whole character.
func lastBytes(p []byte, n int) []byte {
	if len(p) <= n {
		return p
	}
	p = p[len(p)-n:]
	for i := 0; i < len(p) && i < utf8.UTFMax; i++ {
		if utf8.RuneStart(p[i]) {
			return p[i:]
		}
	}
	return p
}

// A window keeps the beginning and the end of a stream.
type window struct {
	headMax int
	head    []byte
	tail    ring
	total   int64
	lines   int
}

// fits reports whether n more bytes still fit without anything being lost.
func (w *window) fits(n int) bool {
	return w.total+int64(n) <= int64(w.headMax)+int64(w.tail.max)
}

func (w *window) write(p []byte) {
	w.total += int64(len(p))
	w.lines += bytes.Count(p, []byte{'\n'})
	n := min(w.headMax-len(w.head), len(p))
	w.head = append(w.head, p[:n]...)
	w.tail.write(p[n:])
}

// text returns what the window holds, and whether something is missing.
func (w *window) text() (string, bool) {
	tail := w.tail.bytes()
	if w.fits(0) {
		return string(w.head) + string(tail), false
	}
	head := wholeLines(w.head)
	tail = fromLine(tail)
	gone := w.total - int64(len(head)) - int64(len(tail))
	lines := w.lines - bytes.Count(head, []byte{'\n'}) - bytes.Count(tail, []byte{'\n'})
	return join(head, tail, gone, lines), true
}

// end returns at least the last n bytes, if there are so many.
func (w *window) end(n int) []byte {
	tail := w.tail.bytes()
	if len(tail) >= n || !w.fits(0) {
		return tail
	}
	return append(bytes.Clone(lastBytes(w.head, n)), tail...)
}

// A ring keeps the last max bytes of a stream.
type ring struct {
	max  int
	buf  []byte
	next int // where the oldest byte lies once the ring is full
}

func (r *ring) write(p []byte) {
	if len(p) > r.max {
		p = p[len(p)-r.max:]
	}
	n := min(r.max-len(r.buf), len(p))
	r.buf = append(r.buf, p[:n]...)
	for p = p[n:]; len(p) > 0; {
		n := copy(r.buf[r.next:], p)
		r.next = (r.next + n) % r.max
		p = p[n:]
	}
}

// bytes returns a copy of what the ring holds, oldest first.
func (r *ring) bytes() []byte {
	return append(bytes.Clone(r.buf[r.next:]), r.buf[:r.next]...)
}

// A spill keeps a whole output, up to a cap, once it begins.
type spill struct {
	open      Spill
	max, left int64
	w         io.WriteCloser
	path      string
	full      bool
	err       error
	begun     bool
}

// begin opens the spill and writes what came before; only the first call counts.
func (s *spill) begin(parts ...[]byte) {
	if s.begun || s.open == nil {
		return
	}
	s.begun = true
	w, path, err := s.open()
	if err != nil {
		s.err = fmt.Errorf("the whole output could not be kept: %w", err)
		return
	}
	s.w, s.path = w, path
	for _, p := range parts {
		s.write(p)
	}
}

// write writes if the spill has begun and is neither full nor broken.
func (s *spill) write(p []byte) {
	if s.w == nil || s.full || s.err != nil {
		return
	}
	n := min(s.left, int64(len(p)))
	s.left -= n
	if _, err := s.w.Write(p[:n]); err != nil {
		s.fail(err)
		return
	}
	if n < int64(len(p)) {
		s.cut()
	}
}

// cut ends the spill early and says so in it.
func (s *spill) cut() {
	if s.w == nil || s.full || s.err != nil {
		return
	}
	s.full = true
	if _, err := fmt.Fprintf(s.w, "\n… the output went on; only its first %s bytes are kept …\n", grouped(s.max-s.left)); err != nil {
		s.fail(err)
	}
}

func (s *spill) fail(err error) {
	s.err = fmt.Errorf("only the first %s bytes of the output could be kept: %w", grouped(s.max-s.left), err)
}

// cutShort reports whether the spill holds only the beginning.
func (s *spill) cutShort() bool { return s.full || s.w != nil && s.err != nil }

func (s *spill) close() {
	if s.w == nil {
		return
	}
	if err := s.w.Close(); err != nil && s.err == nil {
		s.fail(err)
	}
}
