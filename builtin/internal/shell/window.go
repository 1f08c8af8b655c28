package shell

import "bytes"

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
