package text

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"znkr.io/diff"
	"znkr.io/diff/textdiff"
)

const (
	// maxDiffInput bounds the text, old and new together, that is compared line by line; the common start and end of
	// both do not count. The comparison needs about 50 bytes for each line.
	maxDiffInput = 64 << 20

	// maxDiffLine is how many bytes of a line a diff shows. diffLead is how many of these precede the first difference
	// in a longer line.
	maxDiffLine = 1000
	diffLead    = 200

	// exactDiffLines is up to how many lines the smallest diff is computed. Above that a heuristic is used for texts
	// with few distinct lines: 20,000 lines of 50 kinds take 4 ms instead of 800.
	exactDiffLines = 4000
)

// diffOptions returns the options for comparing two texts of that size.
func diffOptions(old, new string) []diff.Option {
	if strings.Count(old, "\n")+strings.Count(new, "\n") > exactDiffLines {
		return []diff.Option{diff.Fast()}
	}
	return nil
}

// Diff returns the unified diff from old to new under the given file name,
// with so many lines of context, in at most maxLines lines (and one that says
// what is missing). It is "" if nothing differs. Carriage returns show as ␍
// only where they tell lines apart. complete is false if anything was left
// out.
func Diff(name, old, new string, context, maxLines int) (out string, complete bool) {
	w := &diffWriter{limit: maxLines, complete: true, showCR: eolOf(old) != eolOf(new) || eolOf(old) == Mixed}
	return w.diff(name, 0, old, new, context)
}

// Diff returns what [Diff] returns for the text before and after the replacements. It only looks at the lines around
// them.
func (m *Match) Diff(name string, t *Text, context, maxLines int) (out string, complete bool) {
	from, end := m.Spans[0].Start, m.Spans[len(m.Spans)-1].End
	from, end = linesAround(t.str, from, end, context+1)
	w := &diffWriter{limit: maxLines, complete: true}
	if 2*(end-from) > maxDiffInput {
		return w.tooLong(name, 2*(end-from))
	}
	part := Match{New: m.New}
	for _, sp := range m.Spans {
		part.Spans = append(part.Spans, Span{sp.Start - from, sp.End - from})
	}
	old := t.str[from:end]
	new := part.result(old)
	w.showCR = t.eol == Mixed || eolOf(old) != eolOf(new)
	return w.diff(name, strings.Count(t.str[:from], "\n"), old, new, context)
}

// linesAround widens a range to whole lines and that many lines more on either side.
func linesAround(s string, from, end, lines int) (int, int) {
	for range lines + 1 {
		from = max(0, strings.LastIndexByte(s[:from], '\n'))
	}
	if from > 0 {
		from++
	}
	for range lines + 1 {
		i := strings.IndexByte(s[end:], '\n')
		if i < 0 {
			return from, len(s)
		}
		end += i + 1
	}
	return from, end
}

// Name returns the name of a file for display on one line. A name with characters that cannot be printed, or with
// invalid UTF-8, is quoted.
func Name(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}

// tooLong writes a diff that only says that the changes are too large to show.
func (w *diffWriter) tooLong(name string, size int) (string, bool) {
	w.line("--- ", Name(name))
	w.line("+++ ", Name(name))
	fmt.Fprintf(&w.b, "(the changes span %d bytes: too much to show)\n", size)
	return w.b.String(), false
}

// diff writes the diff of two parts of a file. The first above lines of the file are not in these parts.
func (w *diffWriter) diff(name string, above int, old, new string, context int) (out string, complete bool) {
	if old == new {
		return "", true
	}
	first, oldMid, newMid := differing(old, new, context)
	first += above
	if size := len(oldMid) + len(newMid); size > maxDiffInput {
		return w.tooLong(name, size)
	}
	w.line("--- ", Name(name))
	w.line("+++ ", Name(name))
	options := append(diffOptions(oldMid, newMid), diff.Context(context), textdiff.IndentHeuristic())
	for _, h := range textdiff.Hunks(oldMid, newMid, options...) {
		w.line("@@ ", "-"+hunkRange(h.LineNoX+first, h.EndLineNoX-h.LineNoX)+" +"+
			hunkRange(h.LineNoY+first, h.EndLineNoY-h.LineNoY)+" @@")
		w.edits(h.Edits)
	}
	if w.omitted > 0 {
		fmt.Fprintf(&w.b, "(%d more lines of the diff are not shown)\n", w.omitted)
	}
	return w.b.String(), w.complete
}

// differing cuts the common lines off both ends, except for the context, and
// returns the number of lines cut off at the start.
func differing(old, new string, context int) (first int, oldMid, newMid string) {
	start := prefixLen(old, new)
	start, _ = linesAround(old, start, start, context)
	end := len(old) - suffixLen(old[start:], new[start:])
	_, end = linesAround(old, start, end, context)
	return strings.Count(old[:start], "\n"), old[start:end], new[start : len(new)-(len(old)-end)]
}

// hunkRange formats a range as diff -u does: the first line counted from 1, then the number of lines unless it is 1.
// An empty range names the line before it.
func hunkRange(start, n int) string {
	switch n {
	case 0:
		return strconv.Itoa(start) + ",0"
	case 1:
		return strconv.Itoa(start + 1)
	}
	return strconv.Itoa(start+1) + "," + strconv.Itoa(n)
}

type diffWriter struct {
	b        strings.Builder
	limit    int
	written  int
	omitted  int
	showCR   bool
	complete bool
}

func (w *diffWriter) line(prefix, s string) {
	if w.written >= w.limit {
		w.omitted++
		w.complete = false
		return
	}
	w.written++
	w.b.WriteString(prefix)
	w.b.WriteString(s)
	w.b.WriteByte('\n')
}

// edits writes a hunk. Each removed line of a change is compared with the line that replaces it.
func (w *diffWriter) edits(edits []textdiff.Edit[string]) {
	for len(edits) > 0 {
		gone := run(edits, diff.Delete)
		came := run(edits[gone:], diff.Insert)
		if gone+came == 0 {
			w.edit(edits[0], 0)
			edits = edits[1:]
			continue
		}
		if w.written >= w.limit {
			w.omitted += gone + came
			w.complete = false
		} else {
			w.change(edits[:gone], edits[gone:gone+came])
		}
		edits = edits[gone+came:]
	}
}

// change writes removed lines and the lines that replace them.
func (w *diffWriter) change(gone, came []textdiff.Edit[string]) {
	for i, e := range gone {
		w.edit(e, sameUntil(e, came, i))
	}
	for i, e := range came {
		w.edit(e, sameUntil(e, gone, i))
	}
}

// sameUntil returns how many bytes a line has in common with the start of the other side's line at the same index.
func sameUntil(e textdiff.Edit[string], other []textdiff.Edit[string], i int) int {
	if i >= len(other) {
		return 0
	}
	return prefixLen(e.Line, other[i].Line)
}

// run returns how many edits at the start are of the kind.
func run(edits []textdiff.Edit[string], op diff.Op) int {
	n := 0
	for n < len(edits) && edits[n].Op == op {
		n++
	}
	return n
}

// edit writes one line. Of a long line it shows the part around offset from.
func (w *diffWriter) edit(e textdiff.Edit[string], from int) {
	prefix := " "
	switch e.Op {
	case diff.Delete:
		prefix = "-"
	case diff.Insert:
		prefix = "+"
	}
	s, ended := strings.CutSuffix(e.Line, "\n")
	if strings.HasSuffix(s, "\r") {
		s = s[:len(s)-1]
		if w.showCR {
			s += "␍"
		}
	}
	if len(s) > maxDiffLine {
		s = window(s, from)
		w.complete = false
	}
	w.line(prefix, s)
	if !ended {
		w.line(`\`, " No newline at end of file")
	}
}

// counted returns a number with the word for what is counted, in the plural unless it is 1.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// window returns the part of s around from, with an ellipsis where it was cut.
func window(s string, from int) string {
	start := charStart(s, max(0, min(from-diffLead, len(s)-maxDiffLine)))
	end := charStart(s, min(len(s), start+maxDiffLine))
	out := s[start:end]
	if start > 0 {
		out = fmt.Sprintf("… (%s) ", counted(start, "byte")) + out
	}
	if end < len(s) {
		out += fmt.Sprintf(" … (%s)", counted(len(s)-end, "byte"))
	}
	return out
}

// charStart returns the start of the character that contains the byte at offset i, or i itself if that byte is not
// part of a character.
func charStart(s string, i int) int {
	for back := 0; i < len(s) && back < min(utf8.UTFMax, i+1); back++ {
		if utf8.RuneStart(s[i-back]) {
			return i - back
		}
	}
	return i
}
