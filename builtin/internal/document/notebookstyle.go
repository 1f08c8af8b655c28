package document

import (
	"bytes"
	"encoding/json"
	"strings"
)

// New JSON in a notebook takes the format of the JSON around it. A gap is the
// white space before a key or an element, with or without a line break and
// indentation.

// addIndent returns the gap one level further in.
func (n *Notebook) addIndent(gap string) string {
	if !strings.Contains(gap, "\n") {
		return ""
	}
	return gap + n.indent
}

// keyGap returns the gap before the keys of a cell.
func (n *Notebook) keyGap(cell int) string {
	return n.gapBefore(n.Cells[cell].members[0].key.start)
}

// comma separates what is on lines of its own, or on the same line as the
// file does elsewhere.
func (n *Notebook) comma(gap string) string {
	if gap == "" && strings.HasSuffix(n.colon(), " ") {
		gap = " "
	}
	return "," + gap
}

// colon returns what is between the keys of the file and their values.
func (n *Notebook) colon() string {
	first := n.top[0]
	return string(n.raw[first.key.end:first.value.start])
}

// list writes source as nbformat does: one string for each line. The gap is the
// one before the key whose value it is.
func (n *Notebook) list(source, gap string) string {
	lines := splitLines(source)
	if len(lines) == 0 {
		return "[]"
	}
	inner := n.addIndent(gap)
	end := ""
	if inner != "" {
		end = gap
	}
	var out strings.Builder
	for i, line := range lines {
		before := n.comma(inner)
		if i == 0 {
			before = "[" + inner
		}
		out.WriteString(before + quote(line))
	}
	return out.String() + end + "]"
}

// splitLines cuts s after each of its line endings, as Python's
// str.splitlines(True) does, which nbformat uses.
func splitLines(s string) []string {
	const breaks = "\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029"
	var lines []string
	for s != "" {
		i := strings.IndexAny(s, breaks)
		if i < 0 {
			return append(lines, s)
		}
		for _, r := range s[i:] {
			i += len(string(r))
			break
		}
		if strings.HasPrefix(s[i-1:], "\r\n") {
			i++
		}
		lines = append(lines, s[:i])
		s = s[i:]
	}
	return lines
}

// quote writes a string as JSON with no more escapes than it needs.
func quote(s string) string {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if enc.Encode(s) != nil {
		return `""` // cannot happen: any string is encoded
	}
	return strings.TrimSuffix(out.String(), "\n")
}
