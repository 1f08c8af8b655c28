package document

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// EditMode is the kind of a change by [EditNotebook].
type EditMode string

// The modes, by the names that agents use. The zero mode is refused.
const (
	ReplaceCell EditMode = "replace"
	InsertCell  EditMode = "insert"
	DeleteCell  EditMode = "delete"
)

// A NotebookEdit is a change of one cell.
type NotebookEdit struct {
	Mode EditMode

	// CellID is the cell to replace or delete, or the cell to insert after: an id, or its index from 0, as in "cell-3".
	// Without it a cell is inserted at the start.
	CellID string

	// CellType is "code", "markdown" or "raw". An insertion requires it; a
	// replacement changes the type of the cell to it, or keeps the type if it
	// is empty.
	CellType string

	// Source is the new text.
	Source string
}

// NotebookResult says what was changed.
type NotebookResult struct {
	Index     int    // of the cell, from 0; after the change, or before it was deleted
	CellID    string // as in the file after the change, or before it was deleted
	CellType  string
	OldSource string // empty after an insertion
	NewSource string // empty after a deletion
	Cleared   bool   // outputs were removed: they belonged to the old source
}

// EditNotebook returns raw with one cell changed. Everything else stays the same: other cells, unknown members, the
// order of keys, indentation, line endings, the notation of numbers.
//
// A replaced code cell loses its outputs and its execution count. An inserted cell gets an id if the notebook is of
// nbformat 4.5 or later. Errors say what is wrong, and list the cells.
func EditNotebook(raw []byte, e NotebookEdit) ([]byte, NotebookResult, error) {
	n, err := ParseNotebook(raw)
	if err != nil {
		return nil, NotebookResult{}, err
	}
	if e.Mode != DeleteCell {
		if err := checkType(e); err != nil {
			return nil, NotebookResult{}, err
		}
	}
	var edits []splice
	var res NotebookResult
	switch e.Mode {
	case ReplaceCell:
		edits, res, err = n.replace(e)
	case InsertCell:
		edits, res, err = n.insert(e)
	case DeleteCell:
		edits, res, err = n.delete(e)
	default:
		err = fmt.Errorf("edit_mode is %q: it must be replace, insert or delete", e.Mode)
	}
	if err != nil {
		return nil, NotebookResult{}, err
	}
	out := apply(raw, edits)
	if !json.Valid(bytes.TrimPrefix(out, utf8BOM)) {
		return nil, NotebookResult{}, errors.New("the change would break the notebook: nothing was written; use Edit on " +
			"its text instead")
	}
	return out, res, nil
}

func checkType(e NotebookEdit) error {
	switch e.CellType {
	case "code", "markdown", "raw":
		return nil
	case "":
		if e.Mode == InsertCell {
			return errors.New("cell_type is missing: a cell to insert is code, markdown or raw")
		}
		return nil
	}
	return fmt.Errorf("cell_type is %q: it must be code, markdown or raw", e.CellType)
}

// A splice replaces a range of the file by a text.
type splice struct {
	at   span
	text string
}

// apply returns raw with the splices made, which must not overlap.
func apply(raw []byte, edits []splice) []byte {
	slices.SortStableFunc(edits, func(a, b splice) int { return a.at.start - b.at.start })
	var out []byte
	end := 0
	for _, s := range edits {
		out = append(append(out, raw[end:s.at.start]...), s.text...)
		end = s.at.end
	}
	return append(out, raw[end:]...)
}

// target returns the index of the cell that an edit names.
func (n *Notebook) target(e NotebookEdit) (int, error) {
	if e.CellID == "" {
		return 0, fmt.Errorf("cell_id is missing: which cell to %s; %s", e.Mode, n.ids())
	}
	return n.lookUp(e.CellID)
}

func (n *Notebook) replace(e NotebookEdit) ([]splice, NotebookResult, error) {
	i, err := n.target(e)
	if err != nil {
		return nil, NotebookResult{}, err
	}
	c := n.Cells[i]
	res := NotebookResult{Index: i, CellID: c.ID, CellType: c.Type, OldSource: c.Source, NewSource: e.Source}
	if e.CellType == "" {
		e.CellType = c.Type
	}
	if e.Source == c.Source && e.CellType == c.Type {
		return nil, res, fmt.Errorf("cell %s has that source already: the edit would change nothing", c.ID)
	}
	source := find(c.members, "source")
	edits := []splice{{source.value, n.list(e.Source, n.gapBefore(source.key.start))}}
	if e.CellType != c.Type {
		res.CellType = e.CellType
		m := find(c.members, "cell_type")
		if m == nil {
			return nil, res, fmt.Errorf("cell %s has no cell_type: use Edit on the text of the notebook", c.ID)
		}
		edits = append(edits, splice{m.value, quote(e.CellType)})
	}
	cleared, ok := n.clear(c, e.CellType)
	res.Cleared = ok
	return append(edits, cleared...), res, nil
}

// clear returns the splices that remove the outputs and other members that belong to the old source and type of a
// cell. It reports whether there were outputs.
func (n *Notebook) clear(c Cell, newType string) (edits []splice, outputs bool) {
	if m := find(c.members, "outputs"); m != nil && n.raw[m.value.start] == '[' {
		outputs = len(elements(n.raw, m.value.start, 1)) > 0
	}
	if newType != "code" {
		return n.removeKey(c, "outputs", "execution_count"), outputs
	}
	missing := ""
	for _, field := range []struct{ name, empty string }{{"execution_count", "null"}, {"outputs", "[]"}} {
		m := find(c.members, field.name)
		switch {
		case m == nil:
			missing += n.memberText(c, field.name, field.empty)
		case string(m.value.of(n.raw)) != field.empty:
			edits = append(edits, splice{m.value, field.empty})
		}
	}
	if missing != "" {
		end := find(c.members, "source").value.end
		edits = append(edits, splice{span{end, end}, missing})
	}
	if c.Type != "code" { // nbformat allows these only in the other types
		edits = append(edits, n.removeKey(c, "attachments")...)
	}
	return edits, outputs
}

// memberText returns the text of a member that is added after another one of the cell.
func (n *Notebook) memberText(c Cell, name, value string) string {
	return n.comma(n.gapBefore(find(c.members, "source").key.start)) + quote(name) + n.colon() + value
}

// removeKey returns splices that remove members of a cell, each with one of the commas next to it.
func (n *Notebook) removeKey(c Cell, names ...string) []splice {
	var edits []splice
	kept := false // a member before this one stays
	for i, m := range c.members {
		if !slices.Contains(names, m.name) {
			kept = true
			continue
		}
		at := span{m.key.start, m.value.end}
		if kept {
			at.start = c.members[i-1].value.end // with the comma before it
		} else {
			at.end = c.members[i+1].key.start // with the comma after it: there is one, because source comes later
		}
		edits = append(edits, splice{at: at})
	}
	return edits
}

func (n *Notebook) delete(e NotebookEdit) ([]splice, NotebookResult, error) {
	i, err := n.target(e)
	if err != nil {
		return nil, NotebookResult{}, err
	}
	c := n.Cells[i]
	at := c.at
	switch {
	case len(n.Cells) == 1:
		at = span{n.cells.start + 1, n.cells.end - 1}
	case i == 0:
		at.end = n.Cells[1].at.start
	default:
		at.start = n.Cells[i-1].at.end
	}
	return []splice{{at: at}}, NotebookResult{Index: i, CellID: c.ID, CellType: c.Type, OldSource: c.Source}, nil
}

func (n *Notebook) insert(e NotebookEdit) ([]splice, NotebookResult, error) {
	at := -1 // the index of the cell before the new one
	if e.CellID != "" {
		i, err := n.lookUp(e.CellID)
		if err != nil {
			return nil, NotebookResult{}, err
		}
		at = i
	}
	res := NotebookResult{Index: at + 1, CellID: indexID(at + 1), CellType: e.CellType, NewSource: e.Source}
	id := ""
	if n.minor >= 5 {
		id = n.newID()
		res.CellID = id
	}
	var s splice
	switch {
	case len(n.Cells) == 0:
		gap := n.gapBefore(find(n.top, "cells").key.start)
		s.at = span{n.cells.start + 1, n.cells.end - 1}
		s.text = n.addIndent(gap) + n.newCell(e, id, n.addIndent(n.addIndent(gap)), n.addIndent(gap))
		if strings.Contains(gap, "\n") {
			s.text += gap
		}
	case at < 0:
		gap := n.gapBefore(n.Cells[0].at.start)
		s.at = span{n.Cells[0].at.start, n.Cells[0].at.start}
		s.text = n.newCell(e, id, n.keyGap(0), gap) + n.comma(gap)
	default:
		gap := n.gapBefore(n.Cells[at].at.start)
		s.at = span{n.Cells[at].at.end, n.Cells[at].at.end}
		s.text = n.comma(gap) + n.newCell(e, id, n.keyGap(at), gap)
	}
	return []splice{s}, res, nil
}

// idBytes is half the length of ids as nbformat makes them.
const idBytes = 4

// newID returns an id that no cell has.
func (n *Notebook) newID() string {
	for {
		var b [idBytes]byte
		rand.Read(b[:])
		id := hex.EncodeToString(b[:])
		if !slices.ContainsFunc(n.Cells, func(c Cell) bool { return c.ID == id }) {
			return id
		}
	}
}

// newCell returns the text of a cell, with its keys in the order in which nbformat sorts them.
func (n *Notebook) newCell(e NotebookEdit, id, keyGap, endGap string) string {
	type field struct{ name, value string }
	fields := []field{{"cell_type", quote(e.CellType)}}
	if e.CellType == "code" {
		fields = append(fields, field{"execution_count", "null"})
	}
	if id != "" {
		fields = append(fields, field{"id", quote(id)})
	}
	fields = append(fields, field{"metadata", "{}"})
	if e.CellType == "code" {
		fields = append(fields, field{"outputs", "[]"})
	}
	fields = append(fields, field{"source", n.list(e.Source, keyGap)})
	var out strings.Builder
	for i, f := range fields {
		before := n.comma(keyGap)
		if i == 0 {
			before = "{" + keyGap
		}
		out.WriteString(before + quote(f.name) + n.colon() + f.value)
	}
	if !strings.Contains(keyGap, "\n") {
		endGap = keyGap
	}
	return out.String() + endGap + "}"
}
