package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/builtin/internal/search"
	"github.com/toolhost/toolhost/builtin/internal/search/pattern"
	"github.com/toolhost/toolhost/guard"
)

// grepEntries is the default number of entries that a Grep shows.
const grepEntries = 250

// grepInput is the input of [grepTool].
type grepInput struct {
	Pattern     string `json:"pattern" jsonschema:"the regular expression"`
	Path        string `json:"path,omitempty" jsonschema:"the file or directory to search (default: the first root)"`
	Glob        string `json:"glob,omitempty" jsonschema:"only files whose path matches, such as *.js or **/*.{ts,tsx}; ! excludes"`
	Type        string `json:"type,omitempty" jsonschema:"only files of this type, such as go, py, js or rust"`
	OutputMode  string `json:"output_mode,omitempty" jsonschema:"what to show (default: files_with_matches)"`
	After       int    `json:"-A,omitempty" jsonschema:"lines of context after each match (content)"`
	Before      int    `json:"-B,omitempty" jsonschema:"lines of context before each match (content)"`
	Around      int    `json:"-C,omitempty" jsonschema:"lines of context before and after each match (content)"`
	Context     int    `json:"context,omitempty" jsonschema:"the same as -C"`
	LineNumbers *bool  `json:"-n,omitempty" jsonschema:"show line numbers (content, default: true)"`
	IgnoreCase  bool   `json:"-i,omitempty" jsonschema:"ignore case"`
	Only        bool   `json:"-o,omitempty" jsonschema:"show only what matches, each match on a line of its own (content)"`
	Multiline   bool   `json:"multiline,omitempty" jsonschema:"let a match span lines, and . match line breaks"`
	HeadLimit   *int   `json:"head_limit,omitempty" jsonschema:"how many entries to show (default: 250, 0: all)"`
	Offset      int    `json:"offset,omitempty" jsonschema:"how many entries to skip"`
	NoIgnore    bool   `json:"no_ignore,omitempty" jsonschema:"search ignored files too"`
}

// grepOutput is the structured output of a [grepTool].
type grepOutput struct {
	Files        int `json:"files"`
	Matches      int `json:"matches"`
	Shown        int `json:"shown"`
	NextOffset   int `json:"next_offset,omitempty"`
	IgnoredFiles int `json:"ignored_files"`
}

// Names of the output modes.
var grepModes = map[string]search.Mode{
	"": search.FilesWithMatches, "files_with_matches": search.FilesWithMatches,
	"content": search.Content, "count": search.Count,
}

// grepTool searches the contents of files.
var grepTool = declare(Tool[grepInput]{
	Name:            "Grep",
	SeesHeld:        true,
	Title:           "Search contents",
	Brief:           "search files",
	Core:            true,
	Hints:           Hints{ReadOnly: true, Closed: true},
	Permission:      guard.ToRead,
	Limit:           searchLimit,
	Forms:           grepForms,
	ConcurrencySafe: always[grepInput],
	Refine: func(s *jsonschema.Schema) {
		s.Properties["output_mode"].Enum = []any{"files_with_matches", "content", "count"}
		for _, name := range []string{"-A", "-B", "-C", "context", "head_limit", "offset"} {
			s.Properties[name].Minimum = jsonschema.Ptr(0.0)
		}
		// Pointers tell "not given" from zero; clients are told the plain type, which they all understand.
		for name, kind := range map[string]string{"-n": "boolean", "head_limit": "integer"} {
			s.Properties[name].Type, s.Properties[name].Types = kind, nil
		}
	},
	Plan: func(_ context.Context, env *Env, in grepInput) (Plan, error) {
		if in.Pattern == "" {
			return Plan{}, errors.New("pattern is empty: it would match every line")
		}
		path, err := searchRoot(env.Policy, in.Path)
		if err != nil {
			return Plan{}, err
		}
		return Plan{
			Intent: guard.Intent{Effects: []guard.Effect{guard.Search{Path: path.Path, Pattern: in.Pattern}}},
			Run:    func(ctx context.Context) (Result, error) { return path.say(grep(ctx, env, path.Path, in)) },
		}, nil
	},
})

func grep(ctx context.Context, env *Env, path guard.Path, in grepInput) (Result, error) {
	limit := grepEntries
	if in.HeadLimit != nil {
		limit = *in.HeadLimit
	}
	around := max(in.Around, in.Context)
	scope := searchScope(env.Policy, path)
	asked, rules := env.Policy.Asking(path)
	scope.Asked = asked
	if asked != nil && path.Own() {
		named := env.Policy.Commands().Private().Named
		scope.Asked = func(at string) bool { return asked(named(at)) }
	}
	query := search.GrepQuery{
		Scope: scope, Pattern: in.Pattern, Globs: fromHere(list(in.Glob)), Types: list(in.Type),
		Mode: grepModes[in.OutputMode], Before: max(in.Before, around), After: max(in.After, around),
		LineNumbers: in.LineNumbers == nil || *in.LineNumbers, Only: in.Only, IgnoreCase: in.IgnoreCase,
		Multiline: in.Multiline,
		Limit:     limit, Offset: in.Offset, NoIgnore: in.NoIgnore, Timeout: searchTimeout,
	}
	found, err := grepEither(ctx, env.Runtime.search, query)
	if err != nil {
		return Result{}, noScope(ctx, env, err, in.Path, path, func(dir, rest string) string {
			return fmt.Sprintf("path %q and glob %q", dir, rest)
		})
	}
	found.Notes = append(found.Notes, notes(ownOnly(env.Policy, path))...)
	if len(rules) > 0 { // regardless of content: whether such a file is left out must not depend on it
		found.Notes = append(found.Notes, leftOut(rules))
	}
	none := "No matches."
	if found.Matches > 0 { // the notes say at which entry the result was cut
		none = ""
	}
	return Result{
		Text: searchText(found.Text, none, found.Notes),
		Structured: grepOutput{
			Files: found.Files, Matches: found.Matches, Shown: found.Shown,
			NextOffset: found.NextOffset, IgnoredFiles: found.IgnoredFiles,
		},
	}, nil
}

// grepEither searches for a pattern. If it is not a regular expression, or finds nothing as one, it also searches for
// what it probably means.
func grepEither(ctx context.Context, engine *search.Engine,
	query search.GrepQuery) (found *search.GrepResult, err error) {
	began := time.Now()
	found, err = engine.Grep(ctx, query)
	plain := asPlainText(query.Pattern)
	for _, as := range []struct{ pattern, note string }{
		{withReturns(query, query.Pattern), "The pattern finds nothing; this is what it finds where lines end in CRLF, written %s."},
		{plain, "As a regular expression the pattern finds nothing; this is what it finds as plain text, written %s."},
		{withReturns(query, plain), "The pattern finds nothing; this is what it finds as plain text where lines end in CRLF, written %s."},
	} {
		if as.pattern == "" || err == nil && found.Matches > 0 || errors.Is(err, search.ErrScope) {
			continue
		}
		other := query
		other.Pattern, other.Timeout = as.pattern, max(searchTimeout-time.Since(began), time.Second)
		meant, failed := engine.Grep(ctx, other)
		if failed == nil && meant.Files > 0 {
			meant.Notes = append(meant.Notes, fmt.Sprintf(as.note, as.pattern))
			return meant, nil
		}
	}
	if with := withReturns(query, query.Pattern); with != "" && err == nil && found.NextOffset == 0 && !found.TimedOut {
		query.Pattern, query.Mode, query.Timeout = with, search.FilesWithMatches, max(searchTimeout-time.Since(began),
			time.Second)
		if all, failed := engine.Grep(ctx, query); failed == nil && all.Files > found.Files {
			found.Notes = append(found.Notes, fmt.Sprintf("More files match where lines end in CRLF: pass %s.", with))
		}
	}
	return found, err
}

// withReturns returns a pattern that matches CRLF where text matches LF, or "" if there is no difference. It is for
// searches across lines.
func withReturns(query search.GrepQuery, text string) string {
	if with, differs := pattern.AcceptReturns(text); query.Multiline && differs {
		return with
	}
	return ""
}

// asPlainText returns a regular expression that matches a pattern literally, if that is probably meant: it has
// brackets or signs with a meaning in regular expressions, and no escapes. Otherwise it returns "".
func asPlainText(pattern string) string {
	if strings.Contains(pattern, `\`) || !strings.ContainsAny(pattern, "(){}[]*+?$^") {
		return ""
	}
	return regexp.QuoteMeta(pattern)
}

// leftOut returns a note on the files that a search does not show, by the rules that name them.
func leftOut(rules []string) string {
	const most = 10
	names := strings.Join(rules[:min(len(rules), most)], ", ")
	if len(rules) > most {
		names += " and others"
	}
	return "Left out is what a rule asks for: " + names + ". Name such a file as path, and a person is asked."
}

// grepForms turns a pattern that is a number, and lists of globs and types, into texts. A limit of -1 means no limit.
func grepForms(given map[string]json.RawMessage) {
	numbersAsText("pattern")(given)
	if string(given["head_limit"]) == "-1" {
		given["head_limit"] = json.RawMessage("0")
	}
	for _, name := range []string{"glob", "type"} {
		var all []string
		if json.Unmarshal(given[name], &all) == nil && !isNull(given[name]) {
			given[name], _ = json.Marshal(strings.Join(all, ","))
		}
	}
}

// fromHere removes a leading ./ from globs, which would match no path.
func fromHere(globs []string) []string {
	for i, g := range globs {
		rest, not := strings.CutPrefix(g, "!")
		if here, ok := strings.CutPrefix(rest, "./"); ok {
			globs[i] = "/" + here
			if not {
				globs[i] = "!" + globs[i]
			}
		}
	}
	return globs
}

// list splits a parameter that may have several values, at blanks, and at commas outside of braces.
func list(value string) []string {
	var all []string
	depth, from := 0, 0
	for i, c := range value {
		switch {
		case c == '{':
			depth++
		case c == '}':
			depth--
		case depth <= 0 && (c == ',' || c == ' '):
			all = append(all, value[from:i])
			from = i + 1
		}
	}
	all = append(all, value[from:])
	var some []string
	for _, v := range all {
		if v = strings.TrimSpace(v); v != "" {
			some = append(some, v)
		}
	}
	return some
}
