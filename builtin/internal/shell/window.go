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

// text returns what the window holds. It reports whether something is missing.
func (w *window) text() (string, bool) {
	if w.fits(0) {
		return string(w.head) + string(w.tail.bytes()), false
	}
	return w.ends().text(), true
}

// ends returns the ends of a stream that is longer than the window.
func (w *window) ends() ends {
	return ends{head: wholeLines(w.head), tail: fromLine(w.tail.bytes()), bytes: w.total, lines: w.lines}
}

// ends are the beginning and the end of a stream, and the size of the whole stream.
type ends struct {
	head, tail []byte
	bytes      int64
	lines      int
}

// text returns both ends, with a notice between them of what is missing.
func (e ends) text() string {
	gone := e.bytes - int64(len(e.head)) - int64(len(e.tail))
	lines := e.lines - bytes.Count(e.head, []byte{'\n'}) - bytes.Count(e.tail, []byte{'\n'})
	return join(e.head, e.tail, gone, lines)
}

// shorter returns ends of about n bytes, in the proportion of [DefaultHead] and [DefaultTail].
func (e ends) shorter(n int) ends {
	const all = DefaultHead + DefaultTail
	head := min(len(e.head), int(int64(n)*DefaultHead/all))
	e.head, e.tail = wholeLines(e.head[:head]), fromLine(lastBytes(e.tail, n-head))
	return e
}

// end returns at least the last n bytes of the stream, so far as the window holds them.
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
