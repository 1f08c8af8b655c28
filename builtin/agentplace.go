package builtin

import (
	"context"
	"errors"
	"fmt"
)

// The isolations of an agent.
const (
	isolationNone     = "none"
	isolationWorktree = "worktree"
)

// An agentPlace is the place where an agent works.
type agentPlace struct {
	// Dir is the directory in which the agent starts.
	Dir string
	// Worktree is the worktree of the agent. Nil means the roots of the host.
	Worktree *Worktree
	// Leave is called once, after the agent and its descendants have ended. It returns notes for the result.
	Leave func(ctx context.Context) (lines []string)
}

// agentPlace returns the place of the agent with this id.
func (e *Env) agentPlace(ctx context.Context, id, isolation string) (*agentPlace, error) {
	if isolation == isolationWorktree {
		w, err := e.agentTree(ctx, id)
		if err != nil {
			return nil, err
		}
		release, err := w.Use()
		if err != nil {
			return nil, errors.Join(err, w.Close())
		}
		return &agentPlace{Dir: w.Dir(), Worktree: w, Leave: func(ctx context.Context) []string {
			release()
			return e.Runtime.leaveTree(ctx, w)
		}}, nil
	}
	dir, _, err := workDir(e)
	if err != nil {
		return nil, err
	}
	place := &agentPlace{Dir: dir.Real(), Worktree: e.Worktree, Leave: func(context.Context) []string { return nil }}
	if e.Worktree != nil { // the caller must not leave the worktree while the agent works in it
		release, err := e.Worktree.Use()
		if err != nil {
			return nil, err
		}
		place.Leave = func(context.Context) []string {
			release()
			return nil
		}
	}
	return place, nil
}

// checkIsolation returns an error for an unknown isolation.
func checkIsolation(isolation string) error {
	switch isolation {
	case isolationNone, isolationWorktree:
		return nil
	case "remote":
		return errors.New("isolation: remote is not supported, agents run on this machine: use none or worktree")
	}
	return fmt.Errorf("isolation: expected none or worktree, got %q", isolation)
}
