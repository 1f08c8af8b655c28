package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/toolhost/toolhost/builtin/internal/journal"
	"github.com/toolhost/toolhost/builtin/internal/text"
	"github.com/toolhost/toolhost/guard"
)

// writeInput is the input of [writeTool].
type writeInput struct {
	FilePath string `json:"file_path" jsonschema:"the file to write: absolute, ~/… or relative to the first root"`
	Content  string `json:"content" jsonschema:"the whole content of the file"`
}

// writeTool creates a file or replaces its content.
var writeTool = declare(Tool[writeInput]{
	Name:         "Write",
	SeesHeld:     true,
	Title:        "Write a file",
	Brief:        "write a file",
	Core:         true,
	Hints:        Hints{Idempotent: true, Closed: true},
	Permission:   guard.ToWrite,
	Limit:        changeLimit,
	Uncancelable: true,
	Forms:        jsonContent,
	Plan: func(_ context.Context, env *Env, in writeInput) (Plan, error) {
		if strings.HasSuffix(in.FilePath, "/") {
			return Plan{}, errors.New("file_path ends in a slash: it names a directory, not a file")
		}
		path, err := findNew(env.Policy, in.FilePath)
		if err != nil {
			return Plan{}, err
		}
		return Plan{
			Intent: guard.Intent{Effects: []guard.Effect{guard.Write{Path: path.Path, Added: in.Content,
				Note:    "as the whole content of the file",
				Preview: func() string { return previewWrite(env, path.Path, in.Content) }}}},
			Run: func(ctx context.Context) (Result, error) { return path.say(write(ctx, env, path.Path, in.Content)) },
		}, nil
	},
})

// jsonFile matches names of files that hold one JSON value.
var jsonFile = regexp.MustCompile(`(?i)\.(json[c5]?|jsonld|geojson|topojson|ipynb|webmanifest|har|code-workspace|avsc)$` +
	`|(^|[/\\])\.(babel|eslint|jshint|lintstaged|markdownlint|nyc|prettier|renovate|stylelint|sw)rc$`)

// jsonContent encodes JSON that is sent as the content of a JSON file.
func jsonContent(given map[string]json.RawMessage) {
	var name string
	content := given["content"]
	if json.Unmarshal(given["file_path"], &name) != nil || !jsonFile.MatchString(name) || len(content) == 0 ||
		content[0] == '"' || isNull(content) {
		return
	}
	var text bytes.Buffer
	if json.Indent(&text, content, "", "  ") == nil {
		text.WriteByte('\n')
		given["content"], _ = json.Marshal(text.String()) // a string always encodes
	}
}

func write(ctx context.Context, env *Env, path guard.Path, content string) (Result, error) {
	t, err := openTarget(ctx, env, path, true)
	if err != nil {
		return Result{}, err
	}
	defer t.close()
	if t.missing {
		return t.create(env, content)
	}
	standing, err := t.freshness(env, false)
	if err != nil {
		return Result{}, err
	}
	if standing.Elsewhere {
		return Result{}, &UnreadError{fmt.Errorf("%s has changed on disk since it was last read in this session, outside "+
			"what was shown of it; nothing was written, because Write replaces the whole file. Read it again, then decide "+
			"whether this call is still right", path)}
	}
	like := t.text(standing)
	before := ""
	if like != nil {
		before = like.String()
	}
	raw, kept, err := text.Encode(like, content)
	if wider := t.retryUTF8(err); wider != nil {
		like = wider
		raw, kept, err = text.Encode(like, content)
	}
	if err != nil {
		return Result{}, fmt.Errorf("%s was not changed: %w", path, err)
	}
	out := changeOutput{Path: path.String(), Bytes: len(raw)}
	if bytes.Equal(raw, t.content) {
		t.recordRead(env.ReadState, journal.Blob{}, t.content)
		return Result{Text: fmt.Sprintf("%s has this content already; nothing was written.", path),
			Structured: out}, nil
	}
	note, err := t.replace(env, raw)
	if err != nil {
		return Result{}, err
	}
	after := content
	if like != nil {
		after = like.With(raw).String()
	}
	head := fmt.Sprintf("Updated %s (%s, %s)", path, count(lineCount(content), "line"), count(len(raw), "byte"))
	diff, complete := text.Diff(path.String(), before, after, contextLines, diffLines)
	return Result{Text: changeText(head, append(kept, notes(note)...), diff), Structured: out,
		Summary: plusMinus(diff, complete)}, nil
}
