package builtin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/builtin/internal/document"
	"github.com/toolhost/toolhost/builtin/internal/text"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/readstate"
)

// editInput is the input of [editTool].
type editInput struct {
	FilePath   string `json:"file_path" jsonschema:"the file to change: absolute, ~/… or relative to the first root"`
	OldString  string `json:"old_string" jsonschema:"the text to replace, as Read showed it without the line numbers; empty to create a file"`
	NewString  string `json:"new_string" jsonschema:"the text to put there"`
	ReplaceAll bool   `json:"replace_all,omitempty" jsonschema:"replace every occurrence instead of the only one"`
}

// changeOutput is what programs learn from an [editTool] or a [writeTool].
type changeOutput struct {
	Path         string `json:"path"`
	Replacements int    `json:"replacements,omitempty"`
	Created      bool   `json:"created"`
	Bytes        int    `json:"bytes"`
}

// changeLimit is the longest result of an Edit or a Write, in characters.
const changeLimit = 30_000

// editTool replaces text in a file.
var editTool = declare(Tool[editInput]{
	Name:         "Edit",
	Title:        "Edit a file",
	Brief:        "edit a file",
	Core:         true,
	Hints:        Hints{Closed: true},
	Permission:   guard.ToWrite,
	Limit:        changeLimit,
	Uncancelable: true,
	Plan: func(_ context.Context, env *Env, in editInput) (Plan, error) {
		if in.OldString == in.NewString {
			return Plan{}, errors.New("old_string and new_string are the same: there is nothing to change")
		}
		path, err := env.Policy.Resolve(in.FilePath)
		if err != nil {
			return Plan{}, err
		}
		note := ""
		if in.ReplaceAll {
			note = "at every place of the text"
		}
		return Plan{
			Intent: guard.Intent{Effects: []guard.Effect{guard.Write{Path: path, Removed: in.OldString, Added: in.NewString, Note: note}}},
			Run:    func(ctx context.Context) (Result, error) { return edit(ctx, env, path, in) },
		}, nil
	},
})

func edit(ctx context.Context, env *Env, path guard.Path, in editInput) (Result, error) {
	t, err := openTarget(ctx, env, path, in.OldString == "")
	if err != nil {
		return Result{}, err
	}
	defer t.close()
	if in.OldString == "" && len(t.content) == 0 {
		return t.create(env, in.NewString)
	}
	if t.missing {
		return Result{}, missing(ctx, env, path)
	}
	standing, err := t.freshness(env, true)
	if standing.State == readstate.Unread {
		err = t.showPlace(env, in, err)
	}
	if err != nil {
		return Result{}, err
	}
	before, match, err := t.find(standing, in)
	if err != nil {
		return Result{}, err
	}
	content, err := text.Apply(before, match)
	if wider := t.retryUTF8(err); wider != nil {
		content, err = text.Apply(wider, match) // ASCII is as long in both
	}
	if err != nil {
		return Result{}, fmt.Errorf("%s was not changed: %w", path, err)
	}
	diff, complete := match.Diff(path.String(), before, contextLines, diffLines)
	note, err := t.replace(env, content...)
	if err != nil {
		return Result{}, err
	}
	n := len(match.Spans)
	return Result{
		Text: changeText(fmt.Sprintf("Edited %s (%s)", path, count(n, "replacement")),
			notes(match.MatchKind.Note(), note), diff),
		Structured: changeOutput{Path: path.String(), Replacements: n, Bytes: sizeOf(content)}, Summary: plusMinus(diff, complete),
	}, nil
}

// showPlace answers an Edit of a file that was not read, which unread says, with the lines around the only place that it names. They
// count as read, so that the same call succeeds when it is repeated.
func (t *target) showPlace(env *Env, in editInput, unread error) error {
	if env.Policy.Judge(guard.Intent{Tool: Read.Name, Effects: []guard.Effect{guard.Read{Path: t.path}}}).Action != guard.Allow {
		return unread
	}
	if kind, _ := document.Detect(t.content[:min(len(t.content), document.DetectBytes)], t.path.Real()); kind != document.TextFile {
		return unread
	}
	content := t.text(readstate.Status{})
	if content == nil {
		return unread
	}
	match, err := text.Find(content, in.OldString, in.NewString, false)
	if err != nil || len(match.Spans) != 1 {
		return unread
	}
	place, ok := content.Excerpt(match.Spans[0])
	if !ok {
		return unread
	}
	v := readstate.VersionOf(t.info)
	if content.Charset() != "utf-8" {
		v.Charset = content.Charset()
	}
	if len(t.content) <= wholeFile {
		v.Hash, v.Hashed = readstate.HashOf(t.content), true
	}
	part := readstate.Part{FirstLine: place.First, Lines: place.Last - place.First + 1, Start: place.Start}
	env.ReadState.MarkExcerptRead(t.path.Real(), v, part, place.Raw)
	return fmt.Errorf("%s has not been read in this session. Nothing was changed; this is the only place of old_string:\n%s"+
		"These lines now count as read: repeat the call if it is still right", t.path, place.Shown)
}

// find returns the content as text, and what an edit replaces in it.
func (t *target) find(standing readstate.Status, in editInput) (*text.Text, *text.Match, error) {
	if len(t.content) == 0 {
		return nil, nil, fmt.Errorf("%s was not changed: it is empty, and so must old_string be to fill it; Write does the same", t.path)
	}
	before := t.text(standing)
	if before == nil {
		return nil, nil, fmt.Errorf("%s is not text: Edit cannot change it", t.path)
	}
	match, err := text.Find(before, in.OldString, in.NewString, in.ReplaceAll)
	if err != nil {
		return nil, nil, fmt.Errorf("%s was not changed: %w", t.path, err)
	}
	return before, match, unseen(t.path, before, match, standing)
}

// unseen refuses to replace several places of which some were never shown. One place needs no page: it was
// found by text that the caller knew, and it is the only one.
func unseen(path guard.Path, t *text.Text, m *text.Match, standing readstate.Status) error {
	if standing.Whole || len(m.Spans) < 2 {
		return nil
	}
	s := t.String()
	line, from := 1, 0
	for _, span := range m.Spans {
		line += strings.Count(s[from:span.Start], "\n")
		from = span.Start
		last := line + strings.Count(s[span.Start:span.End], "\n")
		if !standing.Covers(line, last) {
			return fmt.Errorf("%s was not changed: replace_all would also change line %d, which was not shown in this session. Read it first (offset=%d)", path, line, line)
		}
	}
	return nil
}
