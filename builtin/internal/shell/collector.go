package shell

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	// progressLines and progressBytes bound what a progress report shows.
	progressLines = 5
	progressBytes = 2 << 10

	// FloodAfter is how many bytes of one output are cleaned as they arrive. Of what follows only a raw tail is kept,
	// and cleaned at the end: cleaning runs at about 500 MB/s, and a flood must not occupy the server.
	FloodAfter = 64 << 20
)

// A Collector takes the output of one command. It counts and cleans it, keeps its head and tail, and spills all of
// it.
type Collector struct {
	mu    sync.Mutex
	bytes int64
	lines int
	clean cleaner
	win   window
	spill spill
	drain *ring // raw end of an output longer than cleanMax

	cleanMax int64 // how many bytes are cleaned as they arrive

	log  *window       // the end of the output, for reads by offset; nil: no task
	wake chan struct{} // closed at the next change; nil: nothing waits

	bytesMax int64  // when to call flooded; 0: never
	flooded  func() // ends the command; must not block
}

// NewCollector returns a collector that keeps nothing beyond head and tail.
func NewCollector(limits Limits) *Collector {
	c := &Collector{
		win:      window{headMax: limits.Head, tail: ring{max: limits.Tail}},
		cleanMax: FloodAfter,
		spill:    spill{left: limits.SpillMax, max: limits.SpillMax},
	}
	c.clean = newCleaner(c.keep)
	return c
}

// SpillTo keeps a longer output in a spill, which is opened by open when it is first needed.
func (c *Collector) SpillTo(open Spill) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spill.open = open
}

// Write takes more output.
func (c *Collector) Write(p []byte) {
	if len(p) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	room := max(c.cleanMax-c.bytes, 0)
	defer c.changed()
	c.bytes += int64(len(p))
	c.lines += bytes.Count(p, []byte{'\n'})
	c.checkLimit()
	now := p[:min(room, int64(len(p)))]
	c.clean.Write(now)
	if rest := p[len(now):]; len(rest) > 0 {
		if c.drain == nil {
			c.clean.Flush()
			c.drain = &ring{max: c.win.tail.max}
		}
		c.drain.write(rest)
	}
}

// keep takes cleaned output.
func (c *Collector) keep(p []byte) {
	if !c.win.fits(len(p)) {
		// The window still holds everything so far, until the first overflow.
		c.spill.begin(c.win.head, c.win.tail.bytes())
	}
	c.spill.write(p)
	c.win.write(p)
	if c.log != nil {
		c.log.write(p)
	}
}

// changed wakes the goroutines that wait for more output.
func (c *Collector) changed() {
	if c.wake != nil {
		close(c.wake)
		c.wake = nil
	}
}

// Limit makes the collector call flooded once the output is longer than max.
func (c *Collector) Limit(max int64, flooded func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytesMax, c.flooded = max, flooded
	c.checkLimit()
}

func (c *Collector) checkLimit() {
	if c.flooded != nil && c.bytes > c.bytesMax {
		c.flooded()
		c.flooded = nil
	}
}

// Follow begins to keep the last max bytes for reads by offset. They include the output so far, unless part of it is
// no longer held. Follow returns the output so far and the offset of its end.
func (c *Collector) Follow(max int) (soFar string, offset int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = &window{tail: ring{max: max}}
	if c.win.fits(0) {
		c.log.write(c.win.head)
		c.log.write(c.win.tail.bytes())
	}
	c.log.total = c.win.total
	soFar, _ = c.win.text()
	return soFar + string(c.clean.state()), c.win.total
}

// After returns the output from an offset on, so far as it is still kept, and the offset at which that begins. line
// is the present state of the last line, which is not finished yet. more is closed when more output comes.
func (c *Collector) After(offset int64) (text string, from int64, line string, more <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := c.log.tail.bytes()
	first := c.log.total - int64(len(kept))
	if offset < first && len(kept) == c.log.tail.max {
		kept = fromLine(kept) // the beginning of its first line is lost
		first = c.log.total - int64(len(kept))
	}
	from = min(max(offset, first), c.log.total)
	kept = kept[from-first:]
	if c.wake == nil {
		c.wake = make(chan struct{})
	}
	return string(kept), from, string(c.clean.state()), c.wake
}

// Size returns how many bytes of output have come.
func (c *Collector) Size() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}

// LastLines returns the last lines of the output as they are now.
func (c *Collector) LastLines() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var text string
	if c.drain != nil {
		text = CleanText(string(lastBytes(c.drain.bytes(), progressBytes)))
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

// Result ends the collection.
func (c *Collector) Result() Shown {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.drain == nil {
		c.clean.Flush()
	} else {
		c.spill.cut()
	}
	c.spill.close()
	c.changed()
	res := Shown{
		Bytes: c.bytes, Lines: c.lines,
		Spilled: c.spill.path, SpillCut: c.spill.cutShort(), SpillErr: c.spill.err,
	}
	if c.drain != nil {
		res.ends = ends{head: wholeLines(c.win.head), tail: []byte(CleanText(string(fromLine(c.drain.bytes())))),
			bytes: c.bytes, lines: c.lines}
		res.Text, res.Cut = res.ends.text(), true
		return res
	}
	if res.Text, res.Cut = c.win.text(); res.Cut {
		res.ends = c.win.ends()
	}
	return res
}

// join puts a notice of what is missing between head and tail.
func join(head, tail []byte, bytes int64, lines int) string {
	var b strings.Builder
	b.Write(head)
	if len(head) > 0 && head[len(head)-1] != '\n' {
		b.WriteByte('\n')
	}
	switch {
	case lines <= 0:
		fmt.Fprintf(&b, "… %s bytes omitted …\n", grouped(bytes))
	case lines == 1:
		fmt.Fprintf(&b, "… 1 line / %s bytes omitted …\n", grouped(bytes))
	default:
		fmt.Fprintf(&b, "… %s lines / %s bytes omitted …\n", grouped(int64(lines)), grouped(bytes))
	}
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

// longLine is the length in bytes from which a partial line is shown. A shorter one is left out, so that head and
// tail have whole lines. After the headers of a response, its body may be one long line, and all that matters.
const longLine = 2000

// wholeLines returns p up to its last newline. If there is none, or it is more than longLine before the end,
// wholeLines returns p up to its last whole character.
func wholeLines(p []byte) []byte {
	if i := bytes.LastIndexByte(p, '\n'); i >= 0 && len(p)-i <= longLine {
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

// fromLine returns p from the start of its second line, because the first one is incomplete. If there is no second
// line, or the first one is long, fromLine returns p from its first whole character.
func fromLine(p []byte) []byte {
	if i := bytes.IndexByte(p, '\n'); i >= 0 && i+1 < len(p) && i < longLine {
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
