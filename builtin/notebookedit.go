package builtin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/builtin/internal/document"
	"github.com/toolhost/toolhost/builtin/internal/text"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/readstate"
)

// notebookEditInput is the input of [notebookEditTool].
type notebookEditInput struct {
	NotebookPath string  `json:"notebook_path" jsonschema:"the .ipynb file: absolute, ~/… or relative to the first root"`
	CellID       string  `json:"cell_id,omitempty" jsonschema:"the cell, as Read names it; to insert: the one before, or none for the start"`
	NewSource    *string `json:"new_source,omitempty" jsonschema:"the new text of the cell; needed to replace and to insert"`
	CellType     string  `json:"cell_type,omitempty" jsonschema:"what the cell is; needed to insert"`
	EditMode     string  `json:"edit_mode,omitempty" jsonschema:"what to do (default: replace)"`
}

// notebookEditOutput is the structured output of a [notebookEditTool].
type notebookEditOutput struct {
	Path     string `json:"path"`
	CellID   string `json:"cell_id"`
	CellType string `json:"cell_type"`
	EditMode string `json:"edit_mode"`
	Bytes    int    `json:"bytes"`
}

// notebookEditTool changes one cell of a Jupyter notebook.
var notebookEditTool = declare(Tool[notebookEditInput]{
	Name:         "NotebookEdit",
	SeesHeld:     true,
	Title:        "Edit a notebook",
	Brief:        "edit notebooks",
	Hints:        Hints{Closed: true},
	Permission:   guard.ToWrite,
	Limit:        changeLimit,
	Uncancelable: true,
	Forms:        linesOfSource,
	Refine: func(s *jsonschema.Schema) {
		s.Properties["new_source"].Type, s.Properties["new_source"].Types = "string", nil
		s.Properties["cell_type"].Enum = []any{"code", "markdown", "raw"}
		s.Properties["edit_mode"].Enum = []any{"replace", "insert", "delete"}
	},
	Plan: func(_ context.Context, env *Env, in notebookEditInput) (Plan, error) {
		if in.NewSource == nil && in.EditMode != string(document.DeleteCell) {
			return Plan{}, errors.New("new_source is missing: the new text of the cell. To remove the cell, set edit_mode to " +
				"delete")
		}
		path, err := findNamed(env.Policy, in.NotebookPath)
		if err != nil {
			return Plan{}, err
		}
		effect := guard.Write{Path: path.Path, Note: strings.TrimSpace(cmp.Or(in.EditMode, string(document.ReplaceCell)) +
			" cell " + in.CellID)}
		if in.NewSource != nil {
			effect.Added = *in.NewSource
		}
		return Plan{
			Intent: guard.Intent{Effects: []guard.Effect{effect}},
			Run: func(ctx context.Context) (Result, error) {
				return path.say(editNotebook(ctx, env, path.Path, in))
			},
		}, nil
	},
})

// linesOfSource joins a source that is given as a list of lines, the form in which a notebook stores it.
func linesOfSource(given map[string]json.RawMessage) {
	var lines []string
	if source := given["new_source"]; json.Unmarshal(source, &lines) == nil && !isNull(source) {
		for i, line := range lines[:max(len(lines)-1, 0)] {
			lines[i] = strings.TrimSuffix(line, "\n") + "\n"
		}
		given["new_source"], _ = json.Marshal(strings.Join(lines, "")) // a string always encodes
	}
}

func editNotebook(ctx context.Context, env *Env, path guard.Path, in notebookEditInput) (Result, error) {
	t, err := openTarget(ctx, env, path, false)
	if err != nil {
		return Result{}, err
	}
	defer t.close()
	if t.missing {
		return Result{}, missing(ctx, env, path)
	}
	standing, err := t.freshness(env, false)
	if err != nil {
		return Result{}, err
	}
	mode := document.EditMode(in.EditMode)
	if mode == "" {
		mode = document.ReplaceCell
	}
	if mode == document.InsertCell && in.CellType == "" {
		return Result{}, errors.New("cell_type is needed to insert a cell: code, markdown or raw")
	}
	source := ""
	if in.NewSource != nil {
		source = *in.NewSource
	}
	content, changed, err := t.editCell(standing, document.NotebookEdit{
		Mode: mode, CellID: in.CellID, CellType: in.CellType, Source: source,
	})
	if err != nil {
		return Result{}, fmt.Errorf("%s was not changed: %w%s", path, err, noNotebook(path, t.content))
	}
	note, err := t.replace(env, content...)
	if err != nil {
		return Result{}, err
	}
	cleared := ""
	if changed.Cleared {
		cleared = "the outputs of the cell were removed, because they belonged to its old source"
	}
	verb := map[document.EditMode]string{document.ReplaceCell: "Replaced", document.InsertCell: "Inserted",
		document.DeleteCell: "Deleted"}[mode]
	diff, complete := text.Diff(path.String(), ended(changed.OldSource), ended(changed.NewSource),
		contextLines, diffLines)
	head := fmt.Sprintf("%s the %s cell %s of %s", verb, changed.CellType, changed.CellID, path)
	return Result{
		Text:       changeText(head, notes(cleared, note), diff),
		Structured: notebookEditOutput{path.String(), changed.CellID, changed.CellType, string(mode), sizeOf(content)},
		Summary:    plusMinus(diff, complete),
	}, nil
}

// editCell returns the notebook with one cell changed. It keeps the encoding: JSON is UTF-8, but some programs write
// another one.
func (t *target) editCell(standing readstate.Status, e document.NotebookEdit) ([][]byte,
	document.NotebookResult, error) {
	before := t.text(standing)
	if before == nil || before.Charset() == "utf-8" {
		content, changed, err := document.EditNotebook(t.content, e)
		return [][]byte{content}, changed, err
	}
	old := before.String()
	after, changed, err := document.EditNotebook([]byte(old), e)
	if err != nil {
		return nil, changed, err
	}
	content, err := text.Apply(before, &text.Match{Spans: []text.Span{{End: len(old)}}, New: []string{string(after)}})
	return content, changed, err
}

// noNotebook returns what to do about a file that is not a notebook.
func noNotebook(path guard.Path, content []byte) string {
	switch {
	case !strings.EqualFold(filepath.Ext(path.Real()), ".ipynb"):
		return ". Edit is for files that are no notebooks"
	case len(bytes.TrimSpace(content)) == 0:
		return `. It is empty: Write {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5} to it first`
	}
	return ""
}

// ended adds a final newline to a text that is not empty and lacks one.
func ended(s string) string {
	if s == "" || s[len(s)-1] == '\n' {
		return s
	}
	return s + "\n"
}
