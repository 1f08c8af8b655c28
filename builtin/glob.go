package builtin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/toolhost/toolhost/builtin/internal/search"
	"github.com/toolhost/toolhost/guard"
)

// Limits of one search.
const (
	// searchTimeout ends a search with what was found.
	searchTimeout = 20 * time.Second
	// globLimit is how many paths a Glob shows.
	globLimit = 100
	// searchLimit is the longest result of a Glob or a Grep, in characters.
	searchLimit = 30_000
)

// globInput is the input of [globTool].
type globInput struct {
	Pattern string `json:"pattern" jsonschema:"the glob, such as **/*.go or src/**/test_*.py"`
	Path    string `json:"path,omitempty" jsonschema:"the directory to search (default: the first root)"`
}

// globOutput is the structured output of a [globTool].
type globOutput struct {
	Total int `json:"total"`
	Shown int `json:"shown"`
}

// globTool finds files by name.
var globTool = declare(Tool[globInput]{
	Name:            "Glob",
	SeesHeld:        true,
	Title:           "Find files",
	Brief:           "find files",
	Core:            true,
	Hints:           Hints{ReadOnly: true, Closed: true},
	Permission:      guard.ToRead,
	Limit:           searchLimit,
	ConcurrencySafe: always[globInput],
	Plan: func(_ context.Context, env *Env, in globInput) (Plan, error) {
		if in.Pattern == "" {
			return Plan{}, fmt.Errorf("pattern is empty: use ** for all files")
		}
		asked := in.Pattern
		if err := in.fromHome(); err != nil {
			return Plan{}, err
		}
		path, err := searchRoot(env.Policy, in.Path)
		if err != nil {
			return Plan{}, err
		}
		return Plan{
			Intent: guard.Intent{Effects: []guard.Effect{guard.Search{Path: path.Path, Pattern: asked}}},
			Run:    func(ctx context.Context) (Result, error) { return path.say(glob(ctx, env, path.Path, in, asked)) },
		}, nil
	},
})

// fromHome makes Path the directory at the beginning of a pattern that begins in the home directory.
func (in *globInput) fromHome() error {
	switch {
	case !strings.HasPrefix(in.Pattern, "~/"):
		return nil
	case in.Path != "":
		return errors.New("pattern begins with ~/, and path is given too: name the directory as path, and the rest as " +
			"pattern")
	}
	dir, rest := doublestar.SplitPattern(in.Pattern)
	in.Path, in.Pattern = dir, "./"+rest // without ./ it would be found at any depth
	return nil
}

// searchRoot resolves the directory of a search. The default is the first root.
func searchRoot(policy *guard.Policy, path string) (named, error) {
	if path == "" {
		path = policy.Roots()[0]
	}
	return findNamed(policy, path)
}

// searchScope returns the files that a search may see.
func searchScope(policy *guard.Policy, path guard.Path) search.Scope {
	hidden, tag := policy.Hiding()
	s := search.Scope{Base: policy.Roots()[0], Path: path.Location(), Hidden: hidden,
		HiddenLink: policy.HidingLinks(), HiddenTag: tag}
	if path.Own() {
		// The rules know these names, and the host's directory has mount points there.
		named := policy.Commands().Private().Named
		s.Base, s.Name, s.HiddenTag, s.HiddenLink = "", path.Real(), "", nil
		s.Hidden = func(at string, dir bool) bool { name := named(at); return name == "" || hidden(name, dir) }
	}
	return s
}

func glob(ctx context.Context, env *Env, path guard.Path, in globInput, asked string) (Result, error) {
	found, err := env.Runtime.search.Glob(ctx, search.GlobQuery{
		Scope: searchScope(env.Policy, path), Pattern: in.Pattern, Limit: globLimit, Timeout: searchTimeout,
	})
	if err != nil && filepath.IsAbs(in.Pattern) {
		return Result{}, outsidePattern(env, err, in.Pattern)
	}
	if err != nil {
		return Result{}, noScope(ctx, env, err, in.Path, path, func(dir, rest string) string {
			return fmt.Sprintf("path %q and pattern %q", dir, rest+"/"+in.Pattern)
		})
	}
	found.Notes = append(found.Notes, notes(ownOnly(env.Policy, path))...)
	if found.Total == 0 {
		found.Notes = append(found.Notes, notes(namesDirectory(env.Policy, path, in.Pattern, asked))...)
	}
	return Result{
		Text:       searchText(found.Text, "No files match.", found.Notes),
		Structured: globOutput{Total: found.Total, Shown: found.Shown},
	}, nil
}

// outsidePattern adds the pattern that was probably meant to the error about an absolute pattern outside of the
// roots.
func outsidePattern(env *Env, err error, pattern string) error {
	dir, rest := doublestar.SplitPattern(filepath.ToSlash(pattern))
	path, resolveErr := env.Policy.Resolve(dir)
	if resolveErr != nil {
		return err
	}
	if inside := sameTail(env, path); inside != "" {
		return fmt.Errorf("%w. Did you mean path %q and pattern %q?", err, inside, rest)
	}
	return err
}

// ownOnly returns a note that a search of a private directory shows the caller's files only.
func ownOnly(policy *guard.Policy, path guard.Path) string {
	if !path.Own() || !policy.Commands().Private().Is(path.Real()) {
		return ""
	}
	return fmt.Sprintf("These are the files that commands and tools have put in %s; name a directory in it to search "+
		"what other programs have there.", path)
}

// namesDirectory returns how to list a directory, if a pattern names one; otherwise "".
func namesDirectory(policy *guard.Policy, path guard.Path, pattern, asked string) string {
	name := filepath.FromSlash(pattern)
	if !filepath.IsAbs(name) {
		name = filepath.Join(path.Location(), name)
	}
	info, err := os.Lstat(name)
	if err != nil || !info.IsDir() || !isBelow(name, path.Location()) || policy.Hidden(name, true) {
		return ""
	}
	return fmt.Sprintf("%s is a directory: list its files with %s/**.", asked, strings.TrimSuffix(asked, "/"))
}

// noScope returns what to pass instead of a path that does not exist: a similar name or, for a path with wildcards,
// the directory before them and the rest as the pattern.
func noScope(ctx context.Context, env *Env, err error, given string, path guard.Path, instead func(dir,
	rest string) string) error {
	if !errors.Is(err, search.ErrScope) {
		return err
	}
	if _, statErr := os.Stat(path.Location()); !errors.Is(statErr, fs.ErrNotExist) {
		return err
	}
	if !strings.ContainsAny(given, "*?[{") {
		return missing(ctx, env, path)
	}
	dir, rest := doublestar.SplitPattern(filepath.ToSlash(given))
	return fmt.Errorf("%w. path takes no wildcards: pass %s", err, instead(dir, rest))
}

// searchText returns the result of a search, with notes on what was left out.
func searchText(found, none string, notes []string) string {
	if found == "" && none != "" {
		found = none + "\n"
	}
	if len(notes) == 0 {
		return found
	}
	if found != "" {
		found += "\n"
	}
	return found + "[" + strings.Join(notes, " ") + "]\n"
}
