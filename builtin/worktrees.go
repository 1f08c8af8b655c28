package builtin

import (
	"context"
	"log/slog"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/worktree"
)

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
