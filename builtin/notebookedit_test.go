package builtin

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/toolhost/toolhost/builtin/internal/document"
	"github.com/toolhost/toolhost/readstate"
)

// TestNotebookEncodings: a sandbox is changed in the encoding of the notebook, and every other byte stays.
func TestNotebookEncodings(t *testing.T) {
	const before = "{\r\n \"cells\": [{\"cell_type\": \"markdown\", \"id\": \"a\", \"metadata\": {}, \"source\": [\"grün\"]}],\n" +
		" \"metadata\": {\"x\": \"für\"}, \"nbformat\": 4, \"nbformat_minor\": 5\n}"
	after := strings.Replace(before, "grün", "weiß", 1)
	for name, encode := range map[string]func(string) []byte{
		"UTF-8":                   func(s string) []byte { return []byte(s) },
		"UTF-8 with a mark":       func(s string) []byte { return []byte("\ufeff" + s) },
		"UTF-16 with a mark":      func(s string) []byte { return inUTF16("\ufeff"+s, false) },
		"UTF-16, big-endian":      func(s string) []byte { return inUTF16("\ufeff"+s, true) },
		"UTF-16 without a mark":   func(s string) []byte { return inUTF16(s, false) },
		"windows-1252":            inLatin1,
		"UTF-8 that is in pieces": func(s string) []byte { return []byte(strings.Replace(s, "für", "\xff ü ö ä ß é", 1)) },
	} {
		file := &target{content: encode(before)}
		content, changed, err := file.editCell(readstate.Status{},
			document.NotebookEdit{Mode: document.ReplaceCell, CellID: "a", Source: "weiß"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := bytes.Join(content, nil); !bytes.Equal(got, encode(after)) || changed.OldSource != "grün" {
			t.Errorf("%s: %q was %q, want %q", name, got, changed.OldSource, encode(after))
		}
	}
	file := &target{content: inLatin1(before)}
	if _, _, err := file.editCell(readstate.Status{}, document.NotebookEdit{Mode: document.ReplaceCell, CellID: "a",
		Source: "日本"}); err == nil || !strings.Contains(err.Error(), "no character") {
		t.Errorf("what the encoding lacks: %v", err)
	}
}

func inUTF16(s string, big bool) []byte {
	var out []byte
	for _, unit := range utf16.Encode([]rune(s)) {
		low, high := byte(unit), byte(unit>>8)
		if big {
			low, high = high, low
		}
		out = append(out, low, high)
	}
	return out
}

func inLatin1(s string) []byte {
	var out []byte
	for _, r := range s {
		out = append(out, byte(r))
	}
	return out
}
