package document

import (
	"bytes"
	"encoding/json"
	"strings"
)

// New JSON in a notebook has the format of the JSON around it. A gap is the white space before a key or an element,
// with or without a line break and indentation.

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

// comma returns a comma and the gap. If the gap is empty, it adds a space if the file has one after colons.
func (n *Notebook) comma(gap string) string {
	if gap == "" && strings.HasSuffix(n.colon(), " ") {
		gap = " "
	}
	return "," + gap
}

// colon returns what the file has between a key and its value.
func (n *Notebook) colon() string {
	first := n.top[0]
	return string(n.raw[first.key.end:first.value.start])
}

// list returns source as nbformat writes it: a list with one string for each line. gap is the gap before the key of
// the list.
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

// quote returns a string as JSON, with no more escapes than necessary.
func quote(s string) string {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if enc.Encode(s) != nil {
		return `""` // cannot happen: any string can be encoded
	}
	return strings.TrimSuffix(out.String(), "\n")
}
