package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// MaxNotebook is the largest notebook that is read or edited, in bytes. Larger
// ones hold data, not code.
const MaxNotebook = 256 << 20

const (
	// maxCells is how many cells a notebook may have. Each takes several hundred bytes of memory.
	maxCells = 100_000
	// maxValue is how many bytes of the file the source of a cell, or one text of an output, may take: in memory a list
	// of empty lines takes five times as much.
	maxValue = 16 << 20
	// maxPicture is how many bytes of the file a picture may take.
	maxPicture = 64 << 20
)

// A Notebook is a Jupyter notebook of nbformat 4
// (https://nbformat.readthedocs.io/en/latest/format_description.html).
type Notebook struct {
	// Language is the language of its code cells, or empty.
	Language string
	// Cells are in the order of the file.
	Cells []Cell

	raw    []byte
	minor  int
	top    []member // of the whole file
	cells  span     // the array
	indent string   // of one level, "" if the file is on one line
}

// A Cell is a cell of a notebook.
type Cell struct {
	// ID is its id in the file; if it has none there, ID is its index from 0, as in "cell-3".
	ID string
	// Type is "code", "markdown" or "raw".
	Type string
	// Source is its text.
	Source string
	// ExecutionCount is the number that the kernel gave to its last run, or 0 if it was not run.
	ExecutionCount int

	at      span
	members []member
}

// ParseNotebook reads a notebook. It keeps raw, which must not be changed. The error says what is wrong, and where in
// the file if that is known.
func ParseNotebook(raw []byte) (*Notebook, error) {
	if len(raw) > MaxNotebook {
		return nil, fmt.Errorf("the notebook has %d MB, more than the %d MB that are read", len(raw)>>20,
			MaxNotebook>>20)
	}
	start := 0
	if bytes.HasPrefix(raw, utf8BOM) {
		start = len(utf8BOM)
	}
	if err := checkJSON(raw, start); err != nil {
		return nil, err
	}
	start = skipSpace(raw, start)
	if raw[start] != '{' {
		return nil, errors.New("the file is JSON but no notebook: it is not an object")
	}
	n := &Notebook{raw: raw, top: members(raw, start)}
	if err := n.checkFormat(); err != nil {
		return nil, err
	}
	list := find(n.top, "cells")
	if list == nil || raw[list.value.start] != '[' {
		return nil, errors.New(`the file is JSON but no notebook: it has no array "cells"`)
	}
	n.cells = list.value
	if gap := n.gapBefore(n.top[0].key.start); strings.Contains(gap, "\n") {
		n.indent = gap[strings.LastIndexByte(gap, '\n')+1:]
	}
	n.Language = n.language()
	cells := elements(raw, n.cells.start, maxCells+1)
	if len(cells) > maxCells {
		return nil, fmt.Errorf("the notebook has more than the %d cells that are read", maxCells)
	}
	for i, at := range cells {
		c, err := n.cell(i, at)
		if err != nil {
			return nil, err
		}
		n.Cells = append(n.Cells, c)
	}
	return n, nil
}

// checkJSON returns an error that says where raw[start:] is not valid JSON, or nil.
func checkJSON(raw []byte, start int) error {
	if json.Valid(raw[start:]) {
		return nil
	}
	var all json.RawMessage
	err := json.Unmarshal(raw[start:], &all)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		before := raw[:min(len(raw), start+int(syntax.Offset))]
		return fmt.Errorf("the notebook is not valid JSON: line %d: %w", 1+bytes.Count(before, []byte("\n")), err)
	}
	return fmt.Errorf("the notebook is not valid JSON: %w", err)
}

// checkFormat returns an error for versions whose cells have another form.
func (n *Notebook) checkFormat() error {
	major := 4 // as old files of version 4 that lack it
	if m := find(n.top, "nbformat"); m != nil {
		v, err := strconv.Atoi(string(m.value.of(n.raw)))
		if err != nil {
			return fmt.Errorf("the notebook's nbformat is %.20q, not a whole number", m.value.of(n.raw))
		}
		major = v
	}
	if m := find(n.top, "nbformat_minor"); m != nil {
		n.minor, _ = strconv.Atoi(string(m.value.of(n.raw)))
	}
	switch {
	case major < 4:
		return fmt.Errorf("the notebook is of the old nbformat %d: convert it with `jupyter nbconvert --to notebook "+
			"--nbformat 4`", major)
	case major > 4:
		return fmt.Errorf("the notebook is of nbformat %d, newer than the 4 that is understood", major)
	}
	return nil
}

// language returns the language that the metadata of the notebook name, or "".
func (n *Notebook) language() string {
	var metadata struct {
		Kernel struct{ Language string } `json:"kernelspec"`
		Info   struct{ Name string }     `json:"language_info"`
	}
	m := find(n.top, "metadata")
	if m == nil || json.Unmarshal(m.value.of(n.raw), &metadata) != nil {
		return ""
	}
	if metadata.Info.Name != "" {
		return metadata.Info.Name
	}
	return metadata.Kernel.Language
}

// cell reads the cell with that index.
func (n *Notebook) cell(index int, at span) (Cell, error) {
	if n.raw[at.start] != '{' {
		return Cell{}, fmt.Errorf("cell %d of the notebook is not an object", index)
	}
	c := Cell{ID: indexID(index), at: at, members: members(n.raw, at.start)}
	if id := c.text(n.raw, "id"); id != "" {
		c.ID = id
	}
	c.Type = c.text(n.raw, "cell_type")
	if m := find(c.members, "execution_count"); m != nil {
		c.ExecutionCount, _ = strconv.Atoi(string(m.value.of(n.raw)))
	}
	m := find(c.members, "source")
	if m == nil {
		return Cell{}, fmt.Errorf("cell %s of the notebook has no source", c.ID)
	}
	source, ok := multiline(m.value.of(n.raw))
	if !ok {
		return Cell{}, fmt.Errorf("the source of cell %s of the notebook is neither text nor a list of lines, or longer "+
			"than %d MB", c.ID, maxValue>>20)
	}
	c.Source = source
	return c, nil
}

// text returns the value of a member that is a string, or "".
func (c *Cell) text(raw []byte, name string) string {
	if m := find(c.members, name); m != nil {
		return unquote(m.value.of(raw))
	}
	return ""
}

// indexID returns the name of a cell that has no id.
func indexID(index int) string { return "cell-" + strconv.Itoa(index) }

// multiline returns a text that nbformat stores as a string or as a list of lines. It reports false if it is longer
// than maxValue.
func multiline(raw []byte) (string, bool) {
	if len(raw) > maxValue {
		return "", false
	}
	var lines []string
	if json.Unmarshal(raw, &lines) == nil && len(raw) > 0 && raw[0] == '[' {
		return strings.Join(lines, ""), true
	}
	var whole string
	if json.Unmarshal(raw, &whole) == nil && len(raw) > 0 && raw[0] == '"' {
		return whole, true
	}
	return "", false
}

// lookUp returns the index of the cell with that id. If no cell has the id, it may be an index ("cell-3").
func (n *Notebook) lookUp(id string) (int, error) {
	found := -1
	for i, c := range n.Cells {
		if c.ID != id {
			continue
		}
		if found >= 0 {
			return 0, fmt.Errorf("cells %d and %d of the notebook both have the id %q: name one of them as %q or %q",
				found, i, id, indexID(found), indexID(i))
		}
		found = i
	}
	if found >= 0 {
		return found, nil
	}
	if digits, ok := strings.CutPrefix(id, "cell-"); ok {
		if i, err := strconv.Atoi(digits); err == nil && i >= 0 && i < len(n.Cells) && indexID(i) == id {
			return i, nil
		}
	}
	return 0, fmt.Errorf("the notebook has no cell %q; %s", id, n.ids())
}

// shownIDs is how many ids an error names.
const shownIDs = 50

// ids returns a text for errors that lists the ids of the cells.
func (n *Notebook) ids() string {
	if len(n.Cells) == 0 {
		return "it has no cells: insert one without a cell_id"
	}
	var ids []string
	for _, c := range n.Cells[:min(len(n.Cells), shownIDs)] {
		ids = append(ids, c.ID)
	}
	more := ""
	if len(n.Cells) > shownIDs {
		more = fmt.Sprintf(" and %d more (Read the notebook)", len(n.Cells)-shownIDs)
	}
	return "its cells are " + strings.Join(ids, ", ") + more
}

// gapBefore returns the white space before raw[at].
func (n *Notebook) gapBefore(at int) string {
	start := at
	for start > 0 && isSpace(n.raw[start-1]) {
		start--
	}
	return string(n.raw[start:at])
}
