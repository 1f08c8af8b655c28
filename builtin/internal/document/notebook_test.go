package document

import (
	"encoding/base64"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/toolhost/toolhost/integration/testenv"
)

// jupyter is a notebook as Jupyter writes them. The $ stand for a picture.
const jupyter = `{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "intro",
   "metadata": {},
   "source": [
    "# Title\n",
    "\n",
    "Text with é and <b>."
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 5,
   "id": "c0de",
   "metadata": {"tags": [ "x" ], "number": 1.50},
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": [
      "10%\r50%\r100%\n",
      "\u001b[31mred\u001b[0m\n"
     ]
    },
    {
     "data": {
      "image/png": "$",
      "text/plain": [
       "<Figure size 640x480>"
      ]
     },
     "metadata": {},
     "output_type": "display_data"
    }
   ],
   "source": [
    "print(1)"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": null,
   "id": "last",
   "metadata": {},
   "outputs": [
    {
     "ename": "ValueError",
     "evalue": "bad",
     "output_type": "error",
     "traceback": [
      "\u001b[0;31mValueError\u001b[0m: bad"
     ]
    }
   ],
   "source": "f()"
  }
 ],
 "metadata": {
  "kernelspec": {
   "display_name": "Python 3",
   "language": "python",
   "name": "python3"
  },
  "unknown": 1e400
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
`

func parse(tb testing.TB, raw string) *Notebook {
	tb.Helper()
	n, err := ParseNotebook([]byte(raw))
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

func TestParseNotebook(t *testing.T) {
	n := parse(t, jupyter)
	want := &Notebook{Language: "python", Cells: []Cell{
		{ID: "intro", Type: "markdown", Source: "# Title\n\nText with é and <b>."},
		{ID: "c0de", Type: "code", Source: "print(1)", ExecutionCount: 5},
		{ID: "last", Type: "code", Source: "f()"},
	}}
	if d := cmp.Diff(want, n, cmpopts.IgnoreUnexported(Notebook{}, Cell{})); d != "" {
		t.Error(d)
	}
	old := parse(t, "\ufeff"+`{"nbformat":4,"nbformat_minor":0,"cells":[{"cell_type":"raw","source":""},{"cell_type":"code","source":["a","b"]}]}`)
	if old.Cells[0].ID != "cell-0" || old.Cells[1].ID != "cell-1" || old.Cells[1].Source != "ab" {
		t.Errorf("got %+v", old.Cells)
	}
}

func TestParseNotebookErrors(t *testing.T) {
	tests := []struct{ name, raw, want string }{
		{"nbformat 3", `{"nbformat": 3, "worksheets": [{"cells": []}]}`, "of the old nbformat 3: convert it with `jupyter nbconvert"},
		{"nbformat 5", `{"nbformat": 5, "cells": []}`, "newer than the 4"},
		{"nbformat 4.0 as a number with a point", `{"nbformat": 4.0, "cells": []}`, "not a whole number"},
		{"no cells", `{"nbformat": 4}`, `no array "cells"`},
		{"cells of another type", `{"nbformat": 4, "cells": {}}`, `no array "cells"`},
		{"empty object", `{}`, `no array "cells"`},
		{"list", `[1]`, "not an object"},
		{"empty", ``, "not valid JSON"},
		{"cut short", "{\n\"nbformat\": 4,\n\"cells\": [", "not valid JSON: line 3"},
		{"broken", "{\n\"cells\": [,]}", "not valid JSON: line 2"},
		{"two values", `{"cells": []} {}`, "not valid JSON"},
		{"cell is no object", `{"cells": ["a"]}`, "cell 0 of the notebook is not an object"},
		{"cell without source", `{"cells": [{"id": "x"}]}`, "cell x of the notebook has no source"},
		{"source is a number", `{"cells": [{"source": 1}]}`, "the source of cell cell-0 of the notebook is neither"},
		{"deep", `{"cells": ` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, "not valid JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseNotebook([]byte(tt.raw))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestRender(t *testing.T) {
	picture := base64.StdEncoding.EncodeToString(encodePNG(t, corners(8, 8)))
	n := parse(t, strings.ReplaceAll(jupyter, "$", picture[:20]+`\n`+picture[20:]+`\n`))
	got := n.Render(RenderOptions{})
	want := `<cell id="intro" type="markdown">
# Title

Text with é and <b>.
</cell>
<cell id="c0de" type="code" language="python" execution_count="5">
print(1)
</cell>
<output type="stdout">
100%
red
</output>
<output type="image/png">[picture 1: 8×8 pixels]</output>
<output type="text/plain">
<Figure size 640x480>
</output>
<cell id="last" type="code" language="python">
f()
</cell>
<output type="error">
ValueError: bad
</output>
`
	if d := cmp.Diff(want, got.Text); d != "" {
		t.Error(d)
	}
	if len(got.Pictures) != 1 || got.Pictures[0].Note != "output of cell 2; PNG image, 8×8 pixels" {
		t.Errorf("pictures: got %+v", got.Pictures)
	}
	if got.First != 1 || got.Shown != 3 || got.Total != 3 || got.Next != 0 || got.Notes != nil {
		t.Errorf("got %+v", got)
	}
}

// withOutput is a notebook of a code cell, twice.
func withOutput(output string) string {
	cell := `{"cell_type":"code","source":"x","outputs":[` + output + `]}`
	return `{"nbformat":4,"cells":[` + cell + `,` + cell + `]}`
}

func TestRenderParts(t *testing.T) {
	stream := `{"output_type":"stream","name":"stdout","text":"` + strings.Repeat("é", 10_000) + `END"}`
	tests := []struct {
		name, raw string
		o         RenderOptions
		shown     int
		text      string // must be in the text
		notes     string
	}{
		{"long output", withOutput(stream), RenderOptions{}, 2, "6002 characters of the output are not shown. Read with offset=1 and limit=1 shows more of this cell.]\né", ""},
		{"cell alone", withOutput(stream), RenderOptions{Offset: 2, Limit: 1}, 1, "END\n", ""},
		{"cell alone, still too long", withOutput(stream), RenderOptions{Offset: 2, Limit: 1, MaxBytes: 1000}, 1,
			"Bash with jq '.cells[1].outputs' shows all.", ""},
		{"first of two", withOutput(""), RenderOptions{Limit: 1}, 1, "cell-0", "cells 1 to 1 of 2. Go on with offset=2."},
		{"page is full", withOutput(stream), RenderOptions{MaxBytes: 9000}, 1, "cell-0", "cells 1 to 1 of 2. Go on with offset=2."},
		{"beyond the end", withOutput(""), RenderOptions{Offset: 9}, 0, "", "offset 9 is beyond the end: the notebook has 2 cells."},
		{"no cells", `{"cells":[]}`, RenderOptions{}, 0, "", "The notebook has no cells."},
		{"bad picture", withOutput(`{"output_type":"display_data","data":{"image/png":"bm90IG9uZQ=="}}`), RenderOptions{}, 2,
			"[This picture is not shown: the content is text, not an image", ""},
		{"bad base64", withOutput(`{"output_type":"display_data","data":{"image/png":"*"}}`), RenderOptions{}, 2, "not valid base64", ""},
		{"HTML only", withOutput(`{"output_type":"execute_result","data":{"text/html":["<b>","x</b>"]}}`), RenderOptions{}, 2,
			"<output type=\"text/html\">\n<b>x</b>\n</output>", ""},
		{"JSON", withOutput(`{"output_type":"execute_result","data":{"application/json":{"a":[1]}}}`), RenderOptions{}, 2, `{"a":[1]}`, ""},
		{"unknown forms", withOutput(`{"output_type":"execute_result","data":{"b/c":"","a/b":{}}}`), RenderOptions{}, 2, `["a/b" "b/c"]`, ""},
		{"error without traceback", withOutput(`{"output_type":"error","ename":"E","evalue":"v"}`), RenderOptions{}, 2, "E: v\n", ""},
		{"outputs of another form", withOutput(`1`), RenderOptions{}, 2, "not as nbformat 4 has them", ""},
		{"many outputs", withOutput(strings.Repeat(`{"output_type":"stream","text":"a"},`, 150) + `{}`), RenderOptions{}, 2, "[51 more outputs are not shown.", ""},
		{"id that breaks out", `{"cells":[{"id":"a\"><cell>\n","cell_type":"raw","source":""}]}`, RenderOptions{}, 1, `<cell id="a\"><cell>\n" type="raw">`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := parse(t, tt.raw).Render(tt.o)
			if got.Shown != tt.shown || !strings.Contains(got.Text, tt.text) ||
				!strings.Contains(strings.Join(got.Notes, " "), tt.notes) {
				t.Errorf("got %d cells, notes %q, %.3000s\nwant %d, %q, %s", got.Shown, got.Notes, got.Text, tt.shown,
					tt.notes, tt.text)
			}
		})
	}
}

// TestRenderPictures ends before a message becomes too large.
func TestRenderPictures(t *testing.T) {
	picture := base64.StdEncoding.EncodeToString(noisePNG(t, 900, 900, false))
	one := `{"output_type":"display_data","data":{"image/png":"` + picture + `"}}`
	got := parse(t, withOutput(strings.Join([]string{one, one, one}, ","))).Render(RenderOptions{})
	size := 0
	for _, p := range got.Pictures {
		size += base64.StdEncoding.EncodedLen(len(p.Data))
	}
	if size > MaxPictures || len(got.Pictures) != 4 ||
		!strings.Contains(got.Text, "there are too many. Read with offset=") {
		t.Errorf("got %d pictures of %d bytes", len(got.Pictures), size)
	}
}

func TestLookUp(t *testing.T) {
	n := parse(t, `{"cells":[{"id":"cell-1","source":""},{"id":"b","source":""},{"id":"twice","source":""},{"id":"twice","source":""},{"source":""}]}`)
	tests := []struct {
		id   string
		want int
		err  string
	}{
		{"cell-1", 0, ""}, // an id comes before an index
		{"cell-0", 0, ""},
		{"b", 1, ""},
		{"cell-4", 4, ""},
		{"twice", 0, `cells 2 and 3 of the notebook both have the id "twice": name one of them as "cell-2" or "cell-3"`},
		{"cell-5", 0, `has no cell "cell-5"; its cells are cell-1, b, twice, twice, cell-4`},
		{"cell-00", 0, "has no cell"},
		{"cell--1", 0, "has no cell"},
		{"B", 0, "has no cell"},
	}
	for _, tt := range tests {
		got, err := n.lookUp(tt.id)
		if got != tt.want || fmt.Sprint(err) != "<nil>" && tt.err == "" || tt.err != "" &&
			!strings.Contains(fmt.Sprint(err), tt.err) {
			t.Errorf("lookUp(%s) = %d, %v; want %d, %q", tt.id, got, err, tt.want, tt.err)
		}
	}
}

// TestRenderPixels has a notebook hold more pixels than are decoded: what follows
// and is small is shown all the same.
func TestRenderPixels(t *testing.T) {
	large := base64.StdEncoding.EncodeToString(pngHeader(11_000, 10_000))
	beyond := base64.StdEncoding.EncodeToString(pngHeader(30_000, 30_000))
	small := base64.StdEncoding.EncodeToString(encodePNG(t, corners(8, 8)))
	var outputs []string
	for _, data := range []string{beyond, large, large, small} {
		outputs = append(outputs, `{"output_type":"display_data","data":{"image/png":"`+data+`"}}`)
	}
	n, err := ParseNotebook([]byte(withOutput(strings.Join(outputs, ","))))
	if err != nil {
		t.Fatal(err)
	}
	r := n.Render(RenderOptions{Limit: 1})
	for _, want := range []string{"more than the 120 million", "cut short", "too many pixels",
		"[picture 1: 8×8 pixels]"} {
		if strings.Count(r.Text, want) != 1 {
			t.Errorf("%q is not there once:\n%s", want, r.Text)
		}
	}
}

// A notebook with millions of small parts takes little memory, and its other cells are shown.
func TestNotebookBoundsMemory(t *testing.T) {
	testenv.NotShort(t, "reads notebooks of 40 MB")
	const many = 1_000_000
	cell := func(outputs string) string {
		return `{"cells":[{"cell_type":"code","id":"a","metadata":{},"source":"x","outputs":[` + outputs +
			`]},{"cell_type":"markdown","id":"b","metadata":{},"source":"after"}],"metadata":{},"nbformat":4}`
	}
	for name, tt := range map[string]struct{ text, want string }{
		"lines":     {cell(`{"output_type":"stream","name":"stdout","text":[` + strings.Repeat(`"",`, 6*many) + `""]}`), "MB and is not shown"},
		"outputs":   {cell(strings.Repeat(`{},`, 2*many) + `{}`), "more outputs are not shown"},
		"kinds":     {cell(`{"output_type":"display_data","data":{` + strings.Repeat(`"k":1,`, 3*many) + `"x":1}}`), "not shown"},
		"traceback": {cell(`{"output_type":"error","ename":"E","evalue":"v","traceback":[` + strings.Repeat(`"",`, 6*many) + `""]}`), "E: v"},
		"odd":       {cell(`1,{"output_type":"stream","name":"stdout","text":"fine\n"}`), "fine"},
	} {
		n, err := ParseNotebook([]byte(tt.text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		before := allocated()
		shown := n.Render(RenderOptions{}).Text
		if took := allocated() - before; took > 40<<20 {
			t.Errorf("%s: showing it took %d MiB", name, took>>20)
		}
		if !strings.Contains(shown, tt.want) || !strings.Contains(shown, "after") {
			t.Errorf("%s: it is shown as %.300s", name, shown)
		}
	}
	_, err := ParseNotebook([]byte(`{"cells":[` + strings.Repeat(`{"source":""},`, maxCells) +
		`{"source":""}],"nbformat":4}`))
	if err == nil || !strings.Contains(err.Error(), "more than the 100000 cells") {
		t.Errorf("too many cells: %v", err)
	}
}

// allocated returns how many bytes were allocated so far.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
