package search

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/toolhost/toolhost/builtin/internal/search/pattern"
	"github.com/toolhost/toolhost/builtin/internal/search/walk"
)

// worker searches one file at a time.
type worker struct {
	search  *search
	matcher *pattern.Matcher
	// buf is the buffer that files are read into; nil before the first.
	buf  *[]byte
	out  output    // of the file that is being searched
	seen fileState // of the file that is being read
}

// buffers are reused between queries: the page faults of fresh memory would
// cost as much as the search.
var buffers = sync.Pool{New: func() any { b := make([]byte, firstRead); return &b }}

const (
	// firstRead is how much of a file is read at first, in bytes: enough to
	// decide whether it is binary, and more than most files have.
	firstRead = pattern.Window
	// maxKept is the largest buffer that is kept for later, in bytes: the largest files
	// in source trees are tables of registers and numbers.
	maxKept = 24 << 20
)

func newWorker(s *search) *worker {
	return &worker{search: s, matcher: pattern.New(s.pattern, &s.stop)}
}

// file searches one file and appends what it finds to the chunk.
func (w *worker) file(f file, c *chunk) {
	s := w.search
	if asked := s.query.Asked; asked != nil && asked(s.list.real(f.rel())) {
		return
	}
	if s.list.age != 0 {
		k := currentState(s.list.tree, s.list.root, f.entry, s.list.age)
		if k != nil && s.list.scope.hidesLink(k.stamp) {
			return
		}
		if k == nil || !w.recall(f, k, c) {
			w.open(f, k, c)
		}
		return
	}
	w.open(f, nil, c)
}

// recall searches a file without reading it, if enough is known of it.
func (w *worker) recall(f file, k *fileState, c *chunk) bool {
	s := w.search
	switch {
	case k.content == contentTooLarge:
		s.tooLarge.Add(1)
		s.list.errors.mention(s.list.printed(f))
	case k.content == contentBinary:
		s.addBinary(f)
	case k.same(f.excluded):
		if k.nul && s.pattern.Lines && pattern.ScansAll(s.pattern) {
			s.binary.Add(1)
		}
	case k.text != nil:
		if s.list.chosen {
			f.entry.use()
		}
		w.out = output{file: f, text: pattern.Decode(k.text), chunk: c, plain: !k.nul &&
			!k.letters, whole: !k.nul, state: k}
		w.text()
	default:
		return false
	}
	return true
}

// open reads a file and searches it. old is what was known of the file, and true, when open was called, or nil.
func (w *worker) open(f file, old *fileState, c *chunk) {
	s := w.search
	stores := w.start(f, old)
	h, err := s.list.root.Open(f.rel())
	if err != nil {
		if !walk.IsGone(err) {
			s.list.errors.add(s.list.printed(f), err)
		}
		return
	}
	defer h.Close()
	var k *fileState
	if (stores || s.list.scope.HiddenLink != nil) && w.seen.refresh(h) {
		k = &w.seen
	}
	if w.hidesLink(h, k) {
		return
	}
	if k != nil && old != nil && k.version == old.version && k.stamp == old.stamp {
		k.indexed = old.indexed
	}
	if w.buf == nil {
		w.buf = buffers.Get().(*[]byte)
	}
	if s.charsets != nil {
		if err := w.foreign(f, h, c); err != nil {
			s.list.errors.add(s.list.printed(f), err)
		}
		return
	}
	raw, err := s.reader().read(h, w.buf)
	switch {
	case errors.Is(err, errTooLarge):
		s.tooLarge.Add(1)
		s.list.errors.mention(s.list.printed(f))
		return
	case errors.Is(err, errBinary):
		s.addBinary(f)
		return
	case err != nil:
		s.list.errors.add(s.list.printed(f), err)
		return
	}
	text := pattern.Decode(raw)
	if stores && k != nil {
		s.list.storeText(f.entry, k, raw)
	}
	w.out = output{file: f, text: text, chunk: c, state: k, handle: h}
	w.text()
}

// hidesLink reports whether an open file is hidden under another of its names. k is its known state, or nil.
func (w *worker) hidesLink(h walk.Handle, k *fileState) bool {
	scope := &w.search.list.scope
	switch {
	case scope.HiddenLink == nil:
		return false
	case k != nil:
		return scope.hidesLink(k.stamp)
	}
	info, err := h.Stat()
	return err == nil && scope.hidesLink(info.Stamp)
}

// end gives back the buffer of the worker.
func (w *worker) end() {
	if w.buf != nil && cap(*w.buf) <= maxKept {
		buffers.Put(w.buf)
	}
	w.buf = nil
}

// start begins the record of a file that is about to be read, and reports whether the record may be kept. old is what
// is known of the file, or nil.
func (w *worker) start(f file, old *fileState) bool {
	l, size := w.search.list, int64(1)
	w.seen = fileState{age: l.age}
	if f.entry == nil {
		return false
	}
	w.seen.version = f.entry.version.Load()
	if old != nil {
		size = old.stamp.Size
	}
	if !l.stores || l.fits || l.tree.engine.texts.makeRoom(size, false) {
		return l.stores
	}
	if l.chosen {
		f.entry.use()
	}
	return false
}

var (
	errTooLarge = errors.New("larger than the search reads")
	errBinary   = errors.New("binary")
)

// reader reads files as a whole.
type reader struct {
	maxFile int64
	direct  bool // the query names the file
	stop    *atomic.Bool
}

func (s *search) reader() reader {
	return reader{maxFile: s.config.MaxFile, direct: s.list.direct || s.charsets != nil, stop: &s.stop}
}

// read reads a whole file into the buffer. It stops early if the start of the file shows that it is binary, or if it
// is too large.
func (r reader) read(h walk.Handle, buf *[]byte) ([]byte, error) {
	*buf = slices.Grow((*buf)[:0], firstRead)
	b := (*buf)[:firstRead] // always the same size: whether a file is binary must not depend on the files before it
	n, err := h.ReadAt(b, 0)
	if err == io.EOF {
		return b[:n], nil
	}
	if err != nil {
		return nil, err
	}
	if !r.direct && isBinary(b) {
		return nil, errBinary
	}
	info, err := h.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size > r.maxFile {
		return nil, errTooLarge
	}
	for more := max(int(info.Size)+1-n, n); ; more = n {
		*buf = slices.Grow(b, more)
		b = (*buf)[:cap(*buf)]
		m, err := h.ReadAt(b[n:], int64(n))
		if n += m; err == io.EOF {
			return b[:n], nil
		}
		if err != nil {
			return nil, err
		}
		if int64(n) > r.maxFile || r.stop.Load() {
			return nil, errTooLarge
		}
	}
}

// isWide reports whether a text is in UTF-16.
func isWide(b []byte) bool {
	return bytes.HasPrefix(b, []byte("\xff\xfe")) || bytes.HasPrefix(b, []byte("\xfe\xff"))
}

// isBinary reports whether Limit would find at the start of a file that it is binary.
func isBinary(b []byte) bool {
	if isWide(b) {
		return false
	}
	return bytes.IndexByte(b[:min(len(b), pattern.Window)], 0) >= 0
}

// text searches the decoded text that the output is set to.
func (w *worker) text() {
	o := &w.out
	o.worker, o.line, o.printed = w, 1, -1
	w.matcher.Reset(o.text, o.plain)
	if !w.search.pattern.Lines {
		o.spans()
	} else {
		o.lines()
	}
	if o.matches == 0 {
		w.search.unmatched(o)
		return
	}
	switch w.search.query.Mode {
	case FilesWithMatches:
		date, err := o.modified()
		if err != nil {
			w.search.list.errors.add(w.search.list.printed(o.file), err)
			return
		}
		o.add(entry{path: o.name(), mtime: byMtime{date, o.file.number}})
	case Count:
		o.chunk.text = append(append(o.chunk.text, o.name()...), ':')
		o.chunk.text = append(strconv.AppendInt(o.chunk.text, int64(o.matches), 10), '\n')
		o.add(entry{first: true, count: o.matches, mtime: byMtime{number: o.file.number}})
	}
}
