package mcpserver

import (
	"context"
	"slices"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
)

// rulesFor returns the rules for a call, for its worktree and its mode.
func rulesFor(ctx context.Context, h *Host, a *Admission) (*guard.Policy, error) {
	tree, err := h.runtime.Worktree(ctx, a.scope.Dir, a.scope.Conversation())
	if err != nil {
		return nil, err
	}
	if isAgent(a.principal) {
		tree = h.children.worktree(a)
	}
	return h.modes.policy(h.policies.forCall(a, tree), a.scope), nil
}

// worktree returns the worktree that a call works in, or nil.
func (c *children) worktree(a *Admission) *builtin.Worktree {
	if one := c.of(a.principal); one != nil { // an agent works where it was started
		return one.spec.Worktree
	}
	return a.scope.Dir.Worktree()
}

// inWorktree returns the configuration of the guard for work in a worktree. The rules of the workspace, as trusted by a
// person, apply there; settings files in the worktree are ignored.
func inWorktree(tree *builtin.Worktree, cfg guard.Config) guard.Config {
	if tree == nil {
		return cfg
	}
	cfg.Copy, cfg.CopyOf, cfg.Originals = tree.Tree(), tree.Source, slices.Concat(cfg.Roots, cfg.Originals)
	cfg.Roots, cfg.ExplicitRoots = tree.Roots(cfg.Roots), true
	return cfg
}
