package guard

import (
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/gitrepo"
	"github.com/toolhost/toolhost/guard/internal/pathname"
)

// isProtected reports whether an element of path below the directory of the boundary that holds it is a
// protected name, whether git obeys the file, or a hook or the host runs it.
func (k *policyData) isProtected(path string) bool {
	rest := k.recursive(path)
	return k.hostFiles.Hold(path) || inProtected(rest) || gitrepo.Completes(path, len(path)-len(rest))
}

// recursive returns the part of a path below the directory of the boundary that holds it.
func (k *policyData) recursive(path string) string {
	rest := path
	for _, b := range k.bounds {
		for _, dir := range b.Names() {
			if pathname.Within(path, dir) && len(path)-len(dir) < len(rest) {
				rest = path[len(dir):] // a root may itself lie in .claude/worktrees
			}
		}
	}
	return rest
}

// worktreesDir is the directory of the worktrees of agents in the host's state.
const worktreesDir = "/worktrees/"

// isState reports whether a slashed path is in the host's state, or one of the host's own files or their
// rotated versions, such as audit.jsonl.1. A root that is the worktree of an agent does not count.
func (k *policyData) isState(path string) bool {
	if k.state.Hold(path) {
		return !inWorktree(path, k.roots, k.state.Names)
	}
	whole := strings.TrimRight(path, "0123456789")
	return len(whole) < len(path) && strings.HasSuffix(whole, ".") && k.state.Hold(whole[:len(whole)-1])
}

// inWorktree reports whether a path of the state lies in a root that is STATE/worktrees/NAME/tree.
func inWorktree(path string, roots []pathname.Place, state []string) bool {
	for _, root := range roots {
		for _, name := range root.Names() {
			if pathname.Within(path, name) && slices.ContainsFunc(state, func(dir string) bool {
				rest, ok := strings.CutPrefix(name, dir+worktreesDir)
				worktree, tree, _ := strings.Cut(rest, "/")
				return ok && worktree != "" && tree == "tree"
			}) {
				return true
			}
		}
	}
	return false
}

// isCritical reports whether removing path would remove the root directory, one of its children, the home
// directory, a root or a parent of one.
func (k *policyData) isCritical(path string) bool {
	return strings.Count(path, "/") == 1 || k.criticalRoots.LieIn(path)
}
