package builtin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/history"
	"github.com/toolhost/toolhost/builtin/internal/worktree"
	"github.com/toolhost/toolhost/guard"
)

// A Worktree is where an agent works on a copy of the user's work tree.
type Worktree = worktree.Worktree

// Worktrees is where the worktrees of agents lie, below a host's state directory.
func Worktrees(stateDir string) worktree.Room { return worktree.In(stateDir) }

// sweepWorktrees commits what was left in worktrees of hosts that were killed.
func sweepWorktrees(ctx context.Context, room worktree.Room, log *slog.Logger) {
	if room == (worktree.Room{}) {
		return
	}
	if err := room.Sweep(ctx, time.Now()); err != nil {
		log.Warn("worktrees of an earlier host are left as they are", "error", err)
	}
}

// ApplyWorktree merges what was changed in a worktree into the user's work tree. It is one change of the history, recorded before the
// first file is written. Ask rules do not apply: the owner applies.
func ApplyWorktree(ctx context.Context, env *Env, w *Worktree, command string) (done worktree.Applied, err error) {
	hidden, _ := env.Policy.Hiding()
	m, err := w.Merge(ctx, hidden)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	done.Conflicts = m.Conflicts
	m.Changes = slices.DeleteFunc(m.Changes, func(c worktree.Merged) bool {
		why := writable(env.Policy, filepath.Join(w.Source, filepath.FromSlash(c.Path)))
		if why != nil {
			done.Refused = append(done.Refused, fmt.Sprintf("%s: %v", c.Path, why))
		}
		return why != nil
	})
	if err := m.Current(ctx); err != nil {
		return done, err
	}
	call := history.Change{Principal: env.Principal, Scope: env.Scope, Tool: "try", Time: time.Now(), Call: history.Call{Command: command}}
	changes, err := recorded(w.Source, m)
	if err == nil {
		err = env.Runtime.history.Record(call, changes)
	}
	if err != nil {
		return done, fmt.Errorf("nothing was applied, because it could not be journalled: %w", err)
	}
	for _, c := range m.Changes {
		err := m.Write(c)
		if errors.Is(err, worktree.ErrStale) {
			done.Conflicts = append(done.Conflicts, c.Path)
			continue
		}
		if err != nil {
			return done, fmt.Errorf("%d of %d files were applied: %s: %w", done.Changed, len(m.Changes), c.Path, err)
		}
		env.ReadState.Forget(filepath.Join(w.Source, filepath.FromSlash(c.Path)))
		done.Changed++
	}
	return done, nil
}

// writable refuses what a rule denies to Edit.
func writable(policy *guard.Policy, path string) error {
	entry, err := policy.ResolveEntry(path)
	if err != nil {
		return err
	}
	if v := policy.Judge(guard.Intent{Tool: "Edit", Effects: []guard.Effect{guard.Write{Path: entry}}}); v.Action == guard.Deny {
		return v
	}
	return nil
}

// recorded is what the history keeps of a merge.
func recorded(top string, m *worktree.Merge) (changes []history.PathChange, err error) {
	for _, dir := range m.NewDirs() {
		made, err := history.NodeAt(dir.Staged)
		if err != nil {
			return nil, err
		}
		changes = append(changes, history.PathChange{Path: filepath.Join(top, filepath.FromSlash(dir.Path)), After: made})
	}
	for _, c := range m.Changes {
		p := history.PathChange{Path: filepath.Join(top, filepath.FromSlash(c.Path))}
		if p.Before, err = history.NodeAt(p.Path); err != nil {
			return nil, err
		}
		if c.Staged != "" {
			if p.After, err = history.NodeAt(c.Staged); err != nil {
				return nil, err
			}
		}
		if mode := m.Mode(c); mode != 0 {
			p.After.Mode = mode
		} else if c.Staged != "" {
			p.Target, err = os.Readlink(c.Staged)
		}
		p.Content = func() ([]byte, error) { return history.ContentAt(p.Path, p.Before) }
		changes = append(changes, p)
	}
	return changes, err
}
