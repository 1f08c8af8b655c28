package pattern

import "bytes"

// Span is a line of a text, from its first byte to its newline, without it.
type Span struct{ Start, End int }

const (
	streamCount = 4
	// minStreams is the length in bytes below which a text is not split.
	minStreams = 1024
)

// stream is a run of the automaton over whole lines of the text.
type stream struct {
	at, end int
	state   uint32
	hits    []Span
}

// scan appends the lines of b[from:to] with a match to hits. Both bounds are starts of lines or ends of the text. The
// text is cut at newlines into four parts that are processed in lockstep: the next state depends on a load from
// memory, and the processor makes four independent loads at once where a single stream would wait for each.
func (d *dfa) scan(b []byte, from, to int, hits []Span) []Span {
	if to-from < minStreams {
		l := stream{at: from, end: to, state: d.start[newline], hits: hits}
		d.run(b, &l)
		return l.hits
	}
	ls := &d.streams
	cut := from
	for k := range ls {
		end := to
		if k < streamCount-1 {
			end = min(lineEnd(b, max(cut, from+(to-from)*(k+1)/streamCount))+1, to)
		}
		ls[k] = stream{at: cut, end: end, state: d.start[newline], hits: ls[k].hits[:0]}
		if cut == end { // an earlier part ends in a long line and took this one: without a line there is no match
			ls[k].at, ls[k].end = 0, 0
		}
		cut = end
	}
	d.lockstep(b, ls)
	for k := range ls {
		d.run(b, &ls[k])
		hits = append(hits, ls[k].hits...)
	}
	return hits
}

// idle is the state of a stream that has ended while others have not. No transition leaves it.
const idle = 0

// lockstep runs the streams until all of them are done. A stream that has ended reads the bytes of another one in
// state idle.
func (d *dfa) lockstep(b []byte, ls *[streamCount]stream) {
	for {
		live, n := -1, 0 // the stream with the fewest bytes left, and how many it has
		for k := range ls {
			if left := ls[k].end - ls[k].at; left > 0 && (live < 0 || left < n) {
				live, n = k, left
			}
		}
		if live < 0 {
			return
		}
		var at [streamCount]int
		var s [streamCount]uint32
		for k := range ls {
			at[k], s[k] = ls[live].at, idle
			if ls[k].at < ls[k].end {
				at[k], s[k] = ls[k].at, ls[k].state
			}
		}
		b0, b1, b2, b3 := b[at[0]:][:n], b[at[1]:][:n], b[at[2]:][:n], b[at[3]:][:n]
		s0, s1, s2, s3 := s[0], s[1], s[2], s[3]
		var t0, t1, t2, t3 uint32
		trans := d.trans
		i := 0
		for ; i < n; i++ {
			t0, t1 = trans[s0|uint32(b0[i])], trans[s1|uint32(b1[i])]
			t2, t3 = trans[s2|uint32(b2[i])], trans[s3|uint32(b3[i])]
			if int32(t0|t1|t2|t3) < 0 {
				break
			}
			s0, s1, s2, s3 = t0, t1, t2, t3
		}
		for k, s := range [streamCount]uint32{s0, s1, s2, s3} {
			if l := &ls[k]; s != idle {
				l.at += i
				l.state = s
				if i == n {
					continue
				}
				if t := d.trans[s|uint32(b[l.at])]; int32(t) < 0 {
					d.special(b, l, t)
				}
			}
		}
		if d.full() {
			d.compact(&ls[0].state, &ls[1].state, &ls[2].state, &ls[3].state)
		}
	}
}

// run runs one stream to its end.
func (d *dfa) run(b []byte, l *stream) {
	for l.at < l.end {
		t := d.trans[l.state|uint32(b[l.at])]
		if int32(t) >= 0 {
			l.state = t
			l.at++
			continue
		}
		d.special(b, l, t)
		if d.full() {
			d.compact(&l.state)
		}
	}
	if l.at == len(b) && l.end == len(b) && len(b) > 0 && b[len(b)-1] != '\n' && d.ends(l.state) {
		l.hits = append(l.hits, Span{lineStart(b, len(b)), len(b)})
	}
}

// special processes one rune whose transition is not computed yet or ends a match.
func (d *dfa) special(b []byte, l *stream, t uint32) {
	size := 1
	if t == unknown {
		t, size = d.advance(l.state, b[:l.end], l.at)
	}
	if t&matched == 0 {
		l.state = t
		l.at += size
		return
	}
	// The match ended before b[at]: its line is the one that contains b[at] or ends there.
	s := Span{lineStart(b, l.at), lineEnd(b, l.at)}
	l.hits = append(l.hits, s)
	l.at = s.End + 1
	l.state = d.start[newline]
}

// lineStart returns the start of the line that holds the position i.
func lineStart(b []byte, i int) int { return bytes.LastIndexByte(b[:i], '\n') + 1 }

// lineEnd returns the end of the line that holds the position i.
func lineEnd(b []byte, i int) int {
	if k := bytes.IndexByte(b[i:], '\n'); k >= 0 {
		return i + k
	}
	return len(b)
}
