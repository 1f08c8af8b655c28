package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// newIDs finds the ids that EditNotebook made up in tests: all others are words.
var newIDs = regexp.MustCompile(`"[0-9a-f]{8}"`)

// change replaces what is there exactly once.
func change(tb testing.TB, s, old, with string) string {
	tb.Helper()
	if strings.Count(s, old) != 1 {
		tb.Fatalf("%q is there %d times", old, strings.Count(s, old))
	}
	return strings.Replace(s, old, with, 1)
}

// forms are ways to write the same notebook.
func forms(s string) map[string]string {
	var compact, spaced bytes.Buffer
	json.Compact(&compact, []byte(s))
	for i, line := range strings.Split(strings.TrimSuffix(s, "\n"), "\n") {
		if i > 0 && !strings.HasSuffix(spaced.String(), "[") && !strings.HasSuffix(spaced.String(), "{") &&
			!strings.HasPrefix(strings.TrimLeft(line, " "), "]") &&
			!strings.HasPrefix(strings.TrimLeft(line, " "), "}") {
			spaced.WriteByte(' ')
		}
		spaced.WriteString(strings.TrimLeft(line, " "))
	}
	tabs := regexp.MustCompile(`(?m)^ +`).ReplaceAllStringFunc(s,
		func(in string) string { return strings.Repeat("\t", len(in)) })
	return map[string]string{
		"as Jupyter writes it": s,
		"CRLF":                 strings.ReplaceAll(s, "\n", "\r\n"),
		"tabs":                 tabs,
		"no final newline":     strings.TrimSuffix(s, "\n"),
		"byte-order mark":      "\ufeff" + s,
		"on one line":          spaced.String(),
		"compact":              compact.String(),
	}
}

// small is a notebook in the exact form that Jupyter gives it.
const small = `{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "intro",
   "metadata": {},
   "source": [
    "# Title"
   ]
  },
  {
   "attachments": {},
   "cell_type": "code",
   "execution_count": 5,
   "id": "code",
   "metadata": {
    "number": 1.50
   },
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": "é"
    }
   ],
   "source": [
    "a = 1\n",
    "a"
   ]
  }
 ],
 "metadata": {
  "unknown": 1e400
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
`

func TestEditNotebook(t *testing.T) {
	const output = `[
    {
     "name": "stdout",
     "output_type": "stream",
     "text": "é"
    }
   ]`
	newCode := `{
   "cell_type": "code",
   "execution_count": null,
   "id": "00000000",
   "metadata": {},
   "outputs": [],
   "source": [
    "b\n",
    "c"
   ]
  }`
	replaced := change(t, change(t, small, `"execution_count": 5`, `"execution_count": null`), output, `[]`)
	tests := []struct {
		name string
		e    NotebookEdit
		want string
		res  NotebookResult
	}{
		{"replace code", NotebookEdit{Mode: ReplaceCell, CellID: "code", Source: "b = \"<é>\\\"\n"},
			change(t, replaced, "[\n    \"a = 1\\n\",\n    \"a\"\n   ]", "[\n    \"b = \\\"<é>\\\\\\\"\\n\"\n   ]"),
			NotebookResult{1, "code", "code", "a = 1\na", "b = \"<é>\\\"\n", true}},
		{"replace by nothing", NotebookEdit{Mode: ReplaceCell, CellID: "cell-0"},
			change(t, small, "[\n    \"# Title\"\n   ]", "[]"),
			NotebookResult{0, "intro", "markdown", "# Title", "", false}},
		{"markdown to code", NotebookEdit{Mode: ReplaceCell, CellID: "intro", CellType: "code", Source: "x"},
			change(t, change(t, small, `"markdown"`, `"code"`), "\"# Title\"\n   ]",
				"\"x\"\n   ],\n   \"execution_count\": null,\n   \"outputs\": []"),
			NotebookResult{0, "intro", "code", "# Title", "x", false}},
		{"code to raw, with the same source", NotebookEdit{Mode: ReplaceCell, CellID: "code", CellType: "raw", Source: "a = 1\na"},
			change(t, change(t, small, `"code",`+"\n   \"execution_count\": 5", `"raw"`), ",\n   \"outputs\": "+
				output, ""),
			NotebookResult{1, "code", "raw", "a = 1\na", "a = 1\na", true}},
		{"insert at the start", NotebookEdit{Mode: InsertCell, CellType: "code", Source: "b\nc"},
			change(t, small, "\"cells\": [\n  {", "\"cells\": [\n  "+newCode+",\n  {"),
			NotebookResult{0, "00000000", "code", "", "b\nc", false}},
		{"insert behind a cell", NotebookEdit{Mode: InsertCell, CellID: "intro", CellType: "code", Source: "b\nc"},
			change(t, small, "  },\n  {\n   \"attachments\"", "  },\n  "+newCode+",\n  {\n   \"attachments\""),
			NotebookResult{1, "00000000", "code", "", "b\nc", false}},
		{"insert at the end", NotebookEdit{Mode: InsertCell, CellID: "code", CellType: "markdown"},
			change(t, small, "  }\n ],\n", "  },\n  {\n   \"cell_type\": \"markdown\",\n   \"id\": \"00000000\",\n   \"metadata\": {},\n   \"source\": []\n  }\n ],\n"),
			NotebookResult{2, "00000000", "markdown", "", "", false}},
		{"delete the first", NotebookEdit{Mode: DeleteCell, CellID: "intro"},
			small[:strings.Index(small, "{\n   \"cell_type\": \"markdown\"")] + small[strings.Index(small,
				"{\n   \"attachments\""):],
			NotebookResult{0, "intro", "markdown", "# Title", "", false}},
		{"delete the last", NotebookEdit{Mode: DeleteCell, CellID: "code"},
			small[:strings.Index(small, ",\n  {\n   \"attachments\"")] + small[strings.Index(small,
				"\n ],\n \"metadata\""):],
			NotebookResult{1, "code", "code", "a = 1\na", "", false}},
	}
	for _, tt := range tests {
		want := forms(tt.want)
		for form, raw := range forms(small) {
			t.Run(tt.name+", "+form, func(t *testing.T) {
				got, res, err := EditNotebook([]byte(raw), tt.e)
				if err != nil {
					t.Fatal(err)
				}
				masked := newIDs.ReplaceAllString(string(got), `"00000000"`)
				if d := cmp.Diff(want[form], masked); d != "" {
					t.Error(d)
				}
				if newIDs.MatchString(`"` + res.CellID + `"`) {
					res.CellID = "00000000"
				}
				if d := cmp.Diff(tt.res, res); d != "" {
					t.Error(d)
				}
			})
		}
	}
}

// TestEditNotebookEmpty inserts the first cell, and deletes the only one.
func TestEditNotebookEmpty(t *testing.T) {
	tests := []struct{ name, empty, filled string }{
		{"compact", `{"cells":[],"nbformat":4}`, `{"cells":[{"cell_type":"raw","metadata":{},"source":["x"]}],"nbformat":4}`},
		{"on one line", `{"cells": [], "nbformat": 4}`, `{"cells": [{"cell_type": "raw", "metadata": {}, "source": ["x"]}], "nbformat": 4}`},
		{"two spaces", "{\r\n  \"cells\": []\r\n}",
			"{\r\n  \"cells\": [\r\n    {\r\n      \"cell_type\": \"raw\",\r\n      \"metadata\": {},\r\n      \"source\": [\r\n        \"x\"\r\n      ]\r\n    }\r\n  ]\r\n}"},
	}
	for _, tt := range tests {
		got, res, err := EditNotebook([]byte(tt.empty), NotebookEdit{Mode: InsertCell, CellType: "raw", Source: "x"})
		if err != nil || string(got) != tt.filled || res.CellID != "cell-0" {
			t.Errorf("%s: got %s, %+v, %v; want %s", tt.name, got, res, err, tt.filled)
		}
		back, _, err := EditNotebook([]byte(tt.filled), NotebookEdit{Mode: DeleteCell, CellID: "cell-0"})
		if err != nil || string(back) != tt.empty {
			t.Errorf("%s: got %s, %v; want %s", tt.name, back, err, tt.empty)
		}
	}
}

func TestEditNotebookErrors(t *testing.T) {
	tests := []struct {
		name string
		e    NotebookEdit
		want string
	}{
		{"no mode", NotebookEdit{CellID: "code"}, `edit_mode is ""`},
		{"unknown mode", NotebookEdit{Mode: "move", CellID: "code"}, `edit_mode is "move"`},
		{"no cell to replace", NotebookEdit{Mode: ReplaceCell, Source: "x"}, "cell_id is missing: which cell to replace; its cells are intro, code"},
		{"no cell to delete", NotebookEdit{Mode: DeleteCell}, "cell_id is missing: which cell to delete"},
		{"unknown cell", NotebookEdit{Mode: DeleteCell, CellID: "nope"}, `has no cell "nope"; its cells are intro, code`},
		{"insert behind an unknown cell", NotebookEdit{Mode: InsertCell, CellType: "raw", CellID: "nope"}, `has no cell "nope"`},
		{"insert without type", NotebookEdit{Mode: InsertCell}, "cell_type is missing"},
		{"unknown type", NotebookEdit{Mode: ReplaceCell, CellID: "code", CellType: "python"}, `cell_type is "python"`},
		{"nothing changes", NotebookEdit{Mode: ReplaceCell, CellID: "intro", Source: "# Title"}, "would change nothing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, _, err := EditNotebook([]byte(small), tt.e)
			if err == nil || got != nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %s, %v; want an error with %q", got, err, tt.want)
			}
		})
	}
	if _, _, err := EditNotebook([]byte(`{"cells":[]}`), NotebookEdit{Mode: DeleteCell, CellID: "a"}); err == nil ||
		!strings.Contains(err.Error(), "it has no cells") {
		t.Errorf("got %v", err)
	}
	if _, _, err := EditNotebook([]byte(`{"nbformat":3}`), NotebookEdit{Mode: DeleteCell, CellID: "a"}); err == nil ||
		!strings.Contains(err.Error(), "nbformat 3") {
		t.Errorf("got %v", err)
	}
}

// TestEditNotebookSource writes and reads any text, in any form of notebook, and
// leaves all bytes before and after the cell as they are.
func TestEditNotebookSource(t *testing.T) {
	var all []string
	for _, raw := range forms(small) {
		all = append(all, raw)
	}
	rapid.Check(t, func(t *rapid.T) {
		raw := []byte(rapid.SampledFrom(all).Draw(t, "form"))
		e := NotebookEdit{
			Mode:     rapid.SampledFrom([]EditMode{ReplaceCell, InsertCell, DeleteCell}).Draw(t, "mode"),
			CellID:   rapid.SampledFrom([]string{"intro", "code"}).Draw(t, "cell"),
			CellType: rapid.SampledFrom([]string{"code", "markdown", "raw"}).Draw(t, "type"),
			Source:   rapid.String().Draw(t, "source"),
		}
		old, err := ParseNotebook(raw)
		if err != nil {
			t.Fatal(err)
		}
		out, res, err := EditNotebook(raw, e)
		if err != nil {
			if strings.Contains(err.Error(), "would change nothing") {
				return
			}
			t.Fatal(err)
		}
		if err := checkEdit(old, raw, out, e, res); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	})
}

// checkEdit compares a notebook before and after an edit.
func checkEdit(old *Notebook, raw, out []byte, e NotebookEdit, res NotebookResult) error {
	now, err := ParseNotebook(out)
	if err != nil {
		return err
	}
	if !bytes.Equal(raw[:old.cells.start], out[:now.cells.start]) ||
		!bytes.Equal(raw[old.cells.end:], out[now.cells.end:]) {
		return fmt.Errorf("bytes outside the cells changed")
	}
	// Which old cell is which new one.
	shift := map[EditMode]int{ReplaceCell: 0, InsertCell: 1, DeleteCell: -1}[e.Mode]
	if len(now.Cells) != len(old.Cells)+shift {
		return fmt.Errorf("%d cells became %d", len(old.Cells), len(now.Cells))
	}
	for i, c := range old.Cells {
		if i == res.Index && e.Mode != InsertCell {
			continue
		}
		j := i
		if i >= res.Index {
			j += shift
		}
		if !bytes.Equal(c.at.of(raw), now.Cells[j].at.of(out)) {
			return fmt.Errorf("cell %d changed", i)
		}
	}
	if e.Mode == DeleteCell {
		return nil
	}
	want := e.Source
	if got := now.Cells[res.Index]; got.Source != string([]rune(want)) || e.CellType != "" && got.Type != e.CellType {
		return fmt.Errorf("the cell is %s with %q, want %s with %q", got.Type, got.Source, e.CellType, want)
	}
	return nil
}

func TestSplitLines(t *testing.T) {
	tests := []struct {
		in   string
		want []string
	}{
		{"", nil},
		{"a", []string{"a"}},
		{"a\n", []string{"a\n"}},
		{"a\n\nb", []string{"a\n", "\n", "b"}},
		{"a\r\nb\rc", []string{"a\r\n", "b\r", "c"}},
		{"\r\r\n", []string{"\r", "\r\n"}},
		{"a\u2028b\u0085c\x1cd", []string{"a\u2028", "b\u0085", "c\x1c", "d"}},
	}
	for _, tt := range tests {
		if d := cmp.Diff(tt.want, splitLines(tt.in)); d != "" {
			t.Errorf("%q: %s", tt.in, d)
		}
	}
}
