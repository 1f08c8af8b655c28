package search

import (
	"slices"
	"strings"
	"sync"
)

// entry is one entry of a result.
type entry struct {
	end   int  // where its text ends in the text of its chunk
	first bool // the first entry of its file
	apart bool // the line does not follow that of the previous entry
	count int  // how many matches it stands for
	// mtime holds the number of the file. A page by time prints path alone: its entries have no text, and none of the
	// fields above.
	path  string
	mtime byMtime
}

// chunk is what a worker found in one chunk of files.
type chunk struct {
	text    []byte
	entries []entry
}

// chunks are reused: growing a new one costs as much as filling it.
var chunks = sync.Pool{New: func() any { return new(chunk) }}

// page puts entries into order and keeps those that the query asked for.
type page struct {
	limit, offset, maxText int
	byTime, context        bool

	mu      sync.Mutex
	room    sync.Cond
	waiting map[int]*chunk // chunks that wait for an earlier one
	held    int            // bytes of text in waiting
	next    int
	over    bool

	text                  strings.Builder
	found                 []entry // byTime: all entries
	seen                  int
	last                  int32 // the number of the file of the last entry shown
	shown, files, matches int
	more                  bool
	uncounted             bool // byTime: files is less than the number of files with a match
}

// add takes the chunk number i, and all chunks after it that are waiting. It
// reports whether the page is full. A worker that is far ahead of the others
// waits here, so that memory stays bounded.
func (p *page) add(i int, c *chunk) (full bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i != p.next && p.held > p.maxText && !p.over {
		p.room.Wait()
	}
	if p.over {
		return true
	}
	p.waiting[i] = c
	p.held += len(c.text)
	for !p.over {
		c, ok := p.waiting[p.next]
		if !ok {
			break
		}
		delete(p.waiting, p.next)
		p.held -= len(c.text)
		p.next++
		p.take(c)
		if cap(c.text) <= maxKept {
			chunks.Put(c)
		}
	}
	p.room.Broadcast()
	return p.over
}

func (p *page) abandon() {
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
	p.room.Broadcast()
}

// take adds the entries of a chunk to the page.
func (p *page) take(c *chunk) {
	if p.byTime {
		p.found = append(p.found, c.entries...)
		return
	}
	start, from := 0, 0 // the bounds of the text that is to be shown and not copied yet
	for _, e := range c.entries {
		if p.limit > 0 && p.shown == p.limit || p.text.Len()+from-start > p.maxText {
			p.more, p.over = true, true
			break
		}
		if p.counts(e); p.seen <= p.offset {
			start, from = e.end, e.end
			continue
		}
		if p.context && e.apart && p.shown > 0 {
			p.write(c.text[start:from])
			p.write(apart)
			start = from
		}
		p.shown++
		p.last = e.mtime.number
		from = e.end
	}
	p.write(c.text[start:from])
}

var apart = []byte("--\n")

// counts adds an entry to the counts.
func (p *page) counts(e entry) {
	p.seen++
	p.matches += e.count
	if e.first {
		p.files++
	}
}

func (p *page) write(text []byte) {
	p.text.Grow(len(text)) // Grow doubles the capacity; Write alone adds a quarter
	p.text.Write(text)
}

// countedFiles is how many files with a match are counted for a page, unless the page itself ends later.
const countedFiles = 1000

// most is how many files with a match are counted at most.
func (p *page) most() int { return max(countedFiles, p.offset+p.limit) }

// newestFound reports whether the search can end: more files have matched than are counted, and enough of them for
// the page are not older than last. All files newer than last have been searched.
func (p *page) newestFound(last byMtime) bool {
	if len(p.found) <= p.most() {
		return false
	}
	n := 0
	for _, e := range p.found {
		if e.mtime.compare(last) <= 0 {
			n++
		}
	}
	return n >= p.offset+p.limit
}

// end returns the index after the last found file that may be shown.
func (p *page) end() int {
	if p.limit == 0 {
		return len(p.found)
	}
	return min(p.offset+p.limit, len(p.found))
}

// finishByTime fills the page with the newest files; equal times go by path.
func (p *page) finishByTime() {
	slices.SortFunc(p.found, func(a, b entry) int { return a.mtime.compare(b.mtime) })
	p.files = len(p.found)
	size := 0
	for _, e := range p.found[min(p.offset, len(p.found)):p.end()] {
		size += len(e.path) + 1
	}
	p.text.Grow(min(size, p.maxText))
	for _, e := range p.found[min(p.offset, len(p.found)):] {
		if p.limit > 0 && p.shown == p.limit || p.text.Len() > p.maxText {
			p.more = true
			break
		}
		p.shown++
		p.text.WriteString(e.path)
		p.text.WriteByte('\n')
	}
	if p.limit > 0 && p.files > p.most() {
		p.files, p.uncounted = p.most(), true
	}
	p.matches = p.files
}
