package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolhost/toolhost/builtin/internal/text"
)

// Limits of a rendered notebook.
const (
	// MaxOutput is how many bytes of one output are shown, unless only its cell is requested.
	MaxOutput = 8_000

	// maxOutputs is how many outputs of one cell are shown. minOutput is how many bytes of room each further output
	// takes at least, with the text around it.
	maxOutputs = 100
	minOutput  = 500
)

// RenderOptions say which part of a notebook to show. Zero fields have defaults.
type RenderOptions struct {
	Offset   int // first cell, counted from 1; default 1
	Limit    int // cells at most; default all. With 1, outputs are shown as long as MaxBytes allow
	MaxBytes int // of text; default [text.DefaultPageBytes]
}

// Rendered is a notebook, or a part of it, as an agent reads it.
type Rendered struct {
	Text     string
	Pictures []Picture // of outputs, in their order; the text says where they belong

	First int // the first cell shown, counted from 1
	Shown int // how many are shown
	Total int // how many there are
	Next  int // the offset to continue with, 0 at the end

	Notes []string
}

// Render shows cells with their ids, sources and outputs. What is too long is
// cut, with a note on how to see the rest. A notebook without cells in the range
// gives a note.
func (n *Notebook) Render(o RenderOptions) *Rendered {
	o.Offset = max(o.Offset, 1)
	if o.MaxBytes <= 0 {
		o.MaxBytes = text.DefaultPageBytes
	}
	r := renderer{raw: n.raw, language: n.Language, maxOutput: MaxOutput,
		out: &Rendered{First: o.Offset, Total: len(n.Cells)}}
	last := len(n.Cells)
	if o.Limit > 0 && o.Limit < last-o.Offset+1 {
		last = o.Offset + o.Limit - 1
	}
	r.alone = o.Limit == 1
	if r.alone {
		r.maxOutput = o.MaxBytes
	}
	for i := o.Offset - 1; i < last; i++ {
		start, pictures := r.text.Len(), len(r.out.Pictures)
		r.cell(i, &n.Cells[i], o.MaxBytes)
		if r.text.Len() > o.MaxBytes && r.out.Shown > 0 {
			kept := r.text.String()[:start]
			r.text.Reset()
			r.text.WriteString(kept)
			r.out.Pictures = r.out.Pictures[:pictures]
			break
		}
		r.out.Shown++
	}
	r.out.Text = r.text.String()
	r.out.finish()
	return r.out
}

// finish adds a note that says how to continue.
func (r *Rendered) finish() {
	switch {
	case r.Total == 0:
		r.Notes = append(r.Notes, "The notebook has no cells.")
	case r.First > r.Total:
		r.Notes = append(r.Notes, fmt.Sprintf("offset %d is beyond the end: the notebook has %d cells.", r.First, r.Total))
	case r.First+r.Shown <= r.Total:
		r.Next = r.First + r.Shown
		r.Notes = append(r.Notes, fmt.Sprintf("This is not the whole notebook: cells %d to %d of %d. Go on with offset=%d.",
			r.First, r.Next-1, r.Total, r.Next))
	}
}

// A renderer writes cells.
type renderer struct {
	raw       []byte
	language  string
	maxOutput int
	alone     bool // only one cell was requested
	text      strings.Builder
	album     Album
	number    int // of the cell, counted from 1
	room      int // for the next output, in bytes
	out       *Rendered
}

func (r *renderer) cell(index int, c *Cell, maxBytes int) {
	r.number = index + 1
	end := r.text.Len() + maxBytes
	fmt.Fprintf(&r.text, "<cell id=%q type=%q", c.ID, c.Type)
	if c.Type == "code" && r.language != "" {
		fmt.Fprintf(&r.text, " language=%q", r.language)
	}
	if c.ExecutionCount > 0 {
		fmt.Fprintf(&r.text, " execution_count=\"%d\"", c.ExecutionCount)
	}
	r.text.WriteString(">\n")
	r.clipped(c.Source, maxBytes/2, "source")
	r.text.WriteString("</cell>\n")
	m := find(c.members, "outputs")
	if m == nil || c.Type != "code" {
		return
	}
	if r.raw[m.value.start] != '[' {
		r.text.WriteString(strangeOutputs)
		return
	}
	const counted = 100_000
	outputs := elements(r.raw, m.value.start, counted)
	for i, at := range outputs {
		if r.room = end - r.text.Len() - minOutput; i == maxOutputs || r.room < 0 {
			fmt.Fprintf(&r.text, "[%d more outputs are not shown. %s]\n", len(outputs)-i, r.wayToSee("outputs"))
			return
		}
		if o, ok := readOutput(r.raw, at); ok {
			r.output(o)
		} else {
			r.text.WriteString(strangeOutputs)
		}
	}
}

const strangeOutputs = "[The outputs of this cell are not as nbformat 4 has them and are not shown.]\n"

// wayToSee returns a text that says how to see what is not shown of a cell.
func (r *renderer) wayToSee(member string) string {
	if !r.alone {
		return fmt.Sprintf("Read with offset=%d and limit=1 shows more of this cell.", r.number)
	}
	return fmt.Sprintf("Bash with jq '.cells[%d].%s' shows all.", r.number-1, member)
}

// clipped writes a text and a line break. If it is too long, the middle is left out: errors are at the end of a long
// output.
func (r *renderer) clipped(s string, limit int, member string) {
	if s == "" {
		return
	}
	if len(s) > limit {
		head, tail := limit/2, len(s)-limit/2
		for head > 0 && !utf8.RuneStart(s[head]) {
			head--
		}
		for tail < len(s) && !utf8.RuneStart(s[tail]) {
			tail++
		}
		hidden := utf8.RuneCountInString(s[head:tail])
		s = fmt.Sprintf("%s\n[… %d characters of the %s are not shown. %s]\n%s", s[:head], hidden,
			strings.TrimSuffix(member, "s"), r.wayToSee(member), s[tail:])
	}
	r.text.WriteString(s)
	if !strings.HasSuffix(s, "\n") {
		r.text.WriteByte('\n')
	}
}

// An output is an output of a code cell. Text, Data and Traceback are raw JSON: only what is shown is decoded.
type output struct {
	Type      string
	Name      string // of a stream
	Text      []byte
	Data      map[string][]byte // by MIME type
	ErrName   string
	ErrValue  string
	Traceback []byte
}

// readOutput reads the members of an output.
func readOutput(raw []byte, at span) (o output, ok bool) {
	if raw[at.start] != '{' {
		return o, false
	}
	for _, m := range members(raw, at.start) {
		value := m.value.of(raw)
		switch m.name {
		case "output_type":
			o.Type = shortText(value)
		case "name":
			o.Name = shortText(value)
		case "text":
			o.Text = value
		case "ename":
			o.ErrName = shortText(value)
		case "evalue":
			o.ErrValue = shortText(value)
		case "traceback":
			o.Traceback = value
		case "data":
			if value[0] != '{' {
				continue
			}
			o.Data = map[string][]byte{}
			for _, form := range members(raw, m.value.start) {
				o.Data[form.name] = form.value.of(raw)
			}
		}
	}
	return o, true
}

// shortText decodes a string, or returns "" if it is longer than maxValue.
func shortText(value []byte) string {
	if len(value) > maxValue {
		return ""
	}
	return unquote(value)
}

func (r *renderer) output(o output) {
	switch o.Type {
	case "stream":
		r.block(o.Name, r.outputText(o.Text))
	case "error":
		var trace []string
		if len(o.Traceback) <= maxValue {
			_ = json.Unmarshal(o.Traceback, &trace) // without a traceback the name of the error is shown
		}
		s := strings.Join(trace, "\n")
		if s == "" {
			s = o.ErrName + ": " + o.ErrValue
		}
		r.block("error", s)
	default:
		r.mimeBundle(o.Data)
	}
}

// outputText returns the decoded text of an output, or says why it is not shown.
func (r *renderer) outputText(value []byte) string {
	if len(value) > maxValue {
		return fmt.Sprintf("[This output has %d MB and is not shown.]", len(value)>>20)
	}
	s, ok := multiline(value)
	if !ok {
		return string(value)
	}
	return s
}

// block writes an output as text.
func (r *renderer) block(kind, s string) {
	if s == "" {
		return
	}
	fmt.Fprintf(&r.text, "<output type=%q>\n", kind)
	r.clipped(plain(s), min(r.maxOutput, r.room), "outputs")
	r.text.WriteString("</output>\n")
}

// If an output comes in several forms, every picture is shown, and the first of the text types that it has.
var (
	pictureTypes = [...]string{"image/png", "image/jpeg", "image/gif", "image/webp"}
	textTypes    = [...]string{"text/markdown", "text/plain", "text/latex", "text/html", "application/json",
		"image/svg+xml"}
)

// mimeBundle writes an output that comes in several forms.
func (r *renderer) mimeBundle(data map[string][]byte) {
	shown := false
	for _, kind := range pictureTypes {
		if value, ok := data[kind]; ok {
			r.picture(kind, value)
			shown = true
		}
	}
	for _, kind := range textTypes {
		value, ok := data[kind]
		if !ok || shown && kind == "image/svg+xml" {
			continue
		}
		r.block(kind, r.outputText(value))
		return
	}
	if !shown && len(data) > 0 {
		var kinds []string
		for kind := range data {
			kinds = append(kinds, kind)
		}
		slices.Sort(kinds)
		r.block("not shown", fmt.Sprintf("%q", kinds[:min(len(kinds), maxOutputs)]))
	}
}

// picture adds a picture, or writes why there is none.
func (r *renderer) picture(kind string, value []byte) {
	say := func(format string, args ...any) {
		fmt.Fprintf(&r.text, "<output type=%q>"+format+"</output>\n", append([]any{kind}, args...)...)
	}
	var encoded string
	switch {
	case len(value) > maxPicture:
		say("[This picture is not shown: it has %d MB.]", len(value)>>20)
		return
	case value[0] == '"':
		encoded = unquote(value)
	default:
		encoded, _ = multiline(value)
	}
	raw, err := Decode(encoded)
	if err != nil {
		say("[This picture is not valid base64 and is not shown.]")
		return
	}
	pic, err := r.album.Picture(raw)
	if full, ok := errors.AsType[FullError](err); ok {
		say("[This picture is not shown: %v. %s]", full, r.wayToSee("outputs"))
		return
	}
	if err != nil {
		say("[This picture is not shown: %v.]", err)
		return
	}
	pic.Note = fmt.Sprintf("output of cell %d; %s", r.number, pic.Note)
	r.out.Pictures = append(r.out.Pictures, pic)
	say("[picture %d: %d×%d pixels]", len(r.out.Pictures), pic.Width, pic.Height)
}
