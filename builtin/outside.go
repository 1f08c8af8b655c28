package builtin

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toolhost/toolhost/guard"
)

// This file adds the next step to the refusal of a path outside of the roots.

// Suggest adds to the refusal of a path outside of the roots that commands can read the file, or which file inside
// was probably meant.
func (e *Env) Suggest(in guard.Intent, v guard.Verdict) guard.Verdict {
	paths := in.Files()
	if v.Action == guard.Allow || v.Rule != guard.RuleBoundary || len(paths) != 1 {
		return v
	}
	if onlyReads(in) && !e.Policy.OfOthers(paths[0]) && e.commandsRead(paths[0]) {
		v.Remedy = "Commands can read it: use Bash. " + v.Remedy
	} else if name := sameTail(e, paths[0]); name != "" {
		v.Remedy = "Did you mean " + name + "?"
	}
	return v
}

func onlyReads(in guard.Intent) bool {
	return !slices.ContainsFunc(in.Effects, func(effect guard.Effect) bool {
		switch effect.(type) {
		case guard.Read, guard.Search:
			return false
		}
		return true
	})
}

// commandsRead reports whether a file exists that a command may read without a question.
func (e *Env) commandsRead(path guard.Path) bool {
	info, err := os.Stat(path.Location())
	if err != nil || e.Visible == nil || !e.Visible(Bash) || e.Policy.Commands().Hidden(path.Real(), info.IsDir()) {
		return false
	}
	word, err := syntax.Quote(path.Real(), syntax.LangBash)
	dir, dirErr := e.Policy.Resolve(e.Policy.Roots()[0])
	if err != nil || dirErr != nil {
		return false
	}
	effect := bashInput{Command: "cat " + word}.effect(dir)
	return e.Policy.Judge(guard.Intent{Tool: Bash.Name, Effects: []guard.Effect{effect}}).Action == guard.Allow
}

// sameTail returns the file below a root that has the longest common tail with a path outside of the roots, or "". A
// path in a directory that exists, or that may be in another project, is not another name of a file in the roots.
func sameTail(env *Env, path guard.Path) string {
	given := filepath.ToSlash(path.String())
	if slices.ContainsFunc(env.Policy.Roots(), func(root string) bool { return isBelow(path.String(), root) }) {
		return ""
	}
	_, tail, ok := strings.Cut(given, "/")
	for ok && tail != "" {
		for _, root := range env.Policy.Roots() {
			inside, err := env.Policy.Resolve(filepath.Join(root, filepath.FromSlash(tail)))
			if err == nil && standsFor(env.Policy, strings.TrimSuffix(given, tail), root, tail) &&
				mayRead(env.Policy, inside) {
				return inside.String()
			}
		}
		_, tail, ok = strings.Cut(tail, "/")
	}
	return ""
}

// mountNames are directories in which containers and examples keep a project.
var mountNames = []string{"workspace", "workspaces", "app", "repo", "project", "projects", "code", "work", "src",
	"testbed", "mnt", "data"}

// standsFor reports whether dir is probably another name of a root. It must not exist, and must be named like
// projects in containers or like the root, or share more than the file name. A directory above the root may be
// missing from the path.
func standsFor(policy *guard.Policy, dir, root, tail string) bool {
	real := filepath.Clean(filepath.FromSlash(dir))
	if isBelow(root, real) {
		return true
	}
	if policy.Hidden(real, true) {
		return false
	}
	if _, err := os.Lstat(real); err == nil {
		return false
	}
	names := strings.Split(strings.Trim(dir, "/"), "/")
	return strings.Contains(tail, "/") || names[len(names)-1] == filepath.Base(root) ||
		len(names) <= 2 && slices.Contains(mountNames, names[0])
}
