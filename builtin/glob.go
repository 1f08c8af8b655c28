package builtin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"toolhost/builtin/internal/search"
	"toolhost/guard"
)

// Limits of one search.
const (
	// SearchTimeout ends a search with what was found.
	SearchTimeout = 20 * time.Second
	// GlobLimit is how many paths a Glob shows.
	GlobLimit = 100
	// searchLimit is the longest result of a Glob or a Grep, in characters.
	searchLimit = 30_000
)

// GlobInput is the input of [Glob].
type GlobInput struct {
	Pattern string `json:"pattern" jsonschema:"the glob, such as **/*.go or src/**/test_*.py"`
	Path    string `json:"path,omitempty" jsonschema:"the directory to search (default: the first root)"`
}

// GlobOutput is what programs learn from a [Glob].
type GlobOutput struct {
	Total int `json:"total"`
	Shown int `json:"shown"`
}

// Glob finds files by name.
var Glob = declare(Tool[GlobInput]{
	Name:   "Glob",
	Title:  "Find files",
	Hints:  Hints{ReadOnly: true, Closed: true},
	Right:  ToRead,
	Limit:  searchLimit,
	Beside: always[GlobInput],
	Plan: func(_ context.Context, env *Env, in GlobInput) (Plan, error) {
		if in.Pattern == "" {
			return Plan{}, fmt.Errorf("pattern is empty: use ** for all files")
		}
		path, err := searchRoot(env, in.Path)
		if err != nil {
			return Plan{}, err
		}
		return Plan{
			Intent: guard.Intent{Searches: []guard.Path{path}},
			Run:    func(ctx context.Context) (Result, error) { return glob(ctx, env, path, in) },
		}, nil
	},
})

// searchRoot resolves where a search starts: the first root when the call does not say.
func searchRoot(env *Env, path string) (guard.Path, error) {
	if path == "" {
		path = env.Policy.Roots()[0]
	}
	return env.Policy.Resolve(path)
}

// searchScope is what a search may see.
func searchScope(env *Env, path guard.Path) search.Scope {
	hidden, tag := env.Policy.Hiding()
	return search.Scope{Base: env.Policy.Roots()[0], Path: path.Real(), Hidden: hidden, HiddenLink: env.Policy.HidingLinks(), HiddenTag: tag}
}

func glob(ctx context.Context, env *Env, path guard.Path, in GlobInput) (Result, error) {
	found, err := env.Box.search.Glob(ctx, search.GlobQuery{
		Scope: searchScope(env, path), Pattern: in.Pattern, Limit: GlobLimit, Timeout: SearchTimeout,
	})
	if err != nil {
		return Result{}, err
	}
	return Result{
		Text:       searchText(found.Text, "No files match.", found.Notes),
		Structured: GlobOutput{Total: found.Total, Shown: found.Shown},
	}, nil
}

// searchText is the result of a search with, last, what was left out.
func searchText(found, none string, notes []string) string {
	if found == "" {
		found = none + "\n"
	}
	if len(notes) == 0 {
		return found
	}
	return found + "\n[" + strings.Join(notes, " ") + "]\n"
}
