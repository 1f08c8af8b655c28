package mcpserver

import (
	"context"
	"slices"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
)

// rulesFor returns the rules for a call, where its conversation works and in its mode.
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

// worktree is the one that a call works in, nil if it works in none.
func (c *children) worktree(a *Admission) *builtin.Worktree {
	if one := c.of(a.principal); one != nil { // an agent works where it was started
		return one.spec.Worktree
	}
	return a.scope.Dir.Worktree()
}

// inWorktree returns the configuration of the guard for what works in a worktree: there the rules of the workspace hold, as a person
// trusts it, and what the settings files in the worktree say does not.
func inWorktree(tree *builtin.Worktree, cfg guard.Config) guard.Config {
	if tree == nil {
		return cfg
	}
	cfg.Copy, cfg.CopyOf, cfg.Originals = tree.Tree(), tree.Source, slices.Concat(cfg.Roots, cfg.Originals)
	cfg.Roots, cfg.ExplicitRoots = tree.Roots(cfg.Roots), true
	return cfg
}
