package builtin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/journal"
	"github.com/toolhost/toolhost/builtin/internal/worktree"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/sandbox"
)

// A Worktree is a copy of the user's work tree in which an agent works.
type Worktree = worktree.Worktree

// Worktrees returns the room of the agents' worktrees in a host's state directory.
func Worktrees(stateDir string) worktree.Room { return worktree.In(stateDir) }

// sweepWorktrees commits the changes in the worktrees of killed hosts.
func sweepWorktrees(ctx context.Context, room worktree.Room, log *slog.Logger) {
	if room == (worktree.Room{}) {
		return
	}
	if err := room.Sweep(ctx, time.Now()); err != nil {
		log.Warn("worktrees of an earlier host are left as they are", "error", err)
	}
}

// conversationTree makes a worktree for the caller's conversation, or takes over one that the caller has left and
// kept under that name.
func (e *Env) conversationTree(ctx context.Context, dir string, in enterWorktreeInput) (w *Worktree, again bool,
	err error) {
	room, denied := e.Runtime.worktrees, e.Policy.Commands().Denied
	if in.Name != "" && in.Base == "" {
		name := room.Find(func(m worktree.Meta) bool {
			return m.Called == in.Name && m.Maker == e.Principal && m.Owner == "" && isBelow(dir, m.Source)
		})
		if name != "" {
			w, err = room.Resume(ctx, name, e.Conversation)
			return w, true, err
		}
	}
	w, err = room.Make(ctx, dir, worktree.Spec{
		Kind: worktree.Agent, Branch: in.Name, Base: in.Base, Dirty: e.WorktreeDirty, Hidden: denied,
		Start: e.gitStart(), Maker: e.Principal, Owner: e.Conversation,
	})
	return w, false, err
}

// agentTree makes a worktree for the agent with that id, from HEAD of the caller's directory, or takes over the one
// in which it worked before.
func (e *Env) agentTree(ctx context.Context, id string) (*Worktree, error) {
	room, name := e.Runtime.worktrees, string(worktree.Agent)+"-"+id
	switch {
	case !hasWorktrees(e.Runtime):
		return nil, errors.New("isolation: a worktree needs a state directory, and this host has none that it can use: " +
			"omit isolation")
	case e.Policy.HasOthers():
		return nil, fmt.Errorf("isolation: %w, and omit isolation", errOthersWorktree)
	case e.Worktree != nil: // the repository is written by the commands in the worktree
		return nil, fmt.Errorf("isolation: the caller already works in the worktree %s: omit isolation, and the agent works "+
			"there too", e.Worktree.Tree())
	}
	if room.Find(func(m worktree.Meta) bool { return m.Name == name && m.Maker == e.Principal }) != "" {
		return room.Resume(ctx, name, "")
	}
	dir, _, err := workDir(e)
	if err != nil {
		return nil, err
	}
	return room.Make(ctx, dir.Real(), worktree.Spec{Kind: worktree.Agent, Name: name, Dirty: e.WorktreeDirty,
		Hidden: e.Policy.Commands().Denied, Start: e.gitStart(), Maker: e.Principal})
}

// gitStart returns a function that starts git for the caller's worktree.
func (e *Env) gitStart() worktree.Start {
	paths := e.Policy.Commands().SandboxPaths()
	return func(cmd *exec.Cmd, writable []string) error {
		return sandbox.Policy{Writable: writable, Denied: paths.Denied, Masked: paths.Masked,
			Shown: paths.Shown}.StartRestricted(cmd)
	}
}

// leaveTree commits the changes of an agent in its worktree, and returns lines that say where they are.
func (b *Runtime) leaveTree(ctx context.Context, w *Worktree) []string {
	b.sandboxes.End(w.Name)
	_, err := w.End(ctx)
	said := w.Summary()
	if err = errors.Join(err, w.Close()); err != nil {
		said = err.Error()
	} else if said == "" {
		said = "Nothing was changed in the worktree, and it was removed."
	}
	return strings.Split(said, "\n")
}

// entered are the worktrees in which conversations work, by conversation. It is kept while a host runs, longer than
// the scopes.
type entered struct {
	mu   sync.Mutex
	open map[string]*Worktree
}

// Worktree returns the worktree in which a conversation works, or nil. It takes over the worktree in which an earlier
// host left the conversation.
func (b *Runtime) Worktree(ctx context.Context, d *WorkDir, conversation string) (*Worktree, error) {
	if conversation == "" || !hasWorktrees(b) {
		return nil, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.looked {
		w, err := b.entered.find(ctx, b.worktrees, conversation)
		if err != nil {
			return nil, fmt.Errorf("this conversation works in a worktree, and nothing is done elsewhere for it: %w",
				err)
		}
		d.tree, d.looked = w, true
	}
	if d.tree == nil {
		return nil, nil
	}
	if _, err := os.Lstat(d.tree.Tree()); errors.Is(err, fs.ErrNotExist) {
		gone := d.tree
		d.tree, d.dir = nil, ""
		b.entered.set(conversation, nil)
		b.sandboxes.End(gone.Name)
		return nil, errors.Join(fmt.Errorf("the worktree %s of this conversation was removed from outside: from the next "+
			"call on it works in %s again", gone.Tree(), gone.Source), gone.Close())
	}
	return d.tree, nil
}

func (t *entered) find(ctx context.Context, room worktree.Room, conversation string) (*Worktree, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.open[conversation]; w != nil {
		return w, nil
	}
	name := room.Find(func(m worktree.Meta) bool { return m.Owner == conversation })
	if name == "" {
		return nil, nil
	}
	w, err := room.Resume(ctx, name, conversation)
	if err == nil {
		t.put(conversation, w)
	}
	return w, err
}

// count returns how many conversations of a caller are in worktrees.
func (t *entered) count(principal string) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.open {
		if w.Maker == principal {
			n++
		}
	}
	return n
}

func (t *entered) put(conversation string, w *Worktree) {
	if t.open == nil {
		t.open = map[string]*Worktree{}
	}
	if t.open[conversation] = w; w == nil {
		delete(t.open, conversation)
	}
}

func (t *entered) set(conversation string, w *Worktree) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.put(conversation, w)
}

// move moves a scope: its directory, and its read state. Whether a file counts as read in the new place depends on
// its content there.
func (e *Env) move(w *Worktree, dir, from, to string) {
	e.Dir.mu.Lock()
	e.Dir.tree, e.Dir.dir, e.Dir.looked = w, dir, true
	e.Dir.mu.Unlock()
	e.ReadState.Follow(from, to)
}

func (t *entered) enter(e *Env, w *Worktree) {
	t.set(e.Conversation, w)
	e.move(w, w.Dir(), w.Source, w.Tree())
}

// leave ends the sandbox of the worktree, and returns the directory to which the scope returns.
func (t *entered) leave(e *Env, w *Worktree) (dir string) {
	t.set(e.Conversation, nil)
	e.Runtime.sandboxes.End(w.Name)
	dir = filepath.Join(w.Source, w.Below)
	e.move(nil, dir, w.Tree(), w.Source)
	return dir
}

// close commits the changes in the worktrees of conversations, which stay in them.
func (t *entered) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for _, w := range t.open {
		_, err := w.End(context.Background())
		errs = append(errs, err, w.Close())
	}
	return errors.Join(errs...)
}

// ApplyWorktree merges what was changed in a worktree into the user's work tree. It is one change of the history,
// recorded before the first file is written. Ask rules do not apply: the owner applies.
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
	steps, err := applying(w.Source, m, env.Principal) // what is found now must be what was merged
	if err == nil {
		err = m.Current(ctx)
	}
	if err != nil {
		return done, err
	}
	call := journal.Change{Scope: env.Scope, Tool: "try", Call: journal.Call{Command: command}}
	nameSteps(env, steps)
	entry, err := env.Runtime.history.BeginSteps(call, steps)
	if err != nil {
		return done, fmt.Errorf("nothing was applied, because it could not be journalled: %w", err)
	}
	end := guardSteps(env)
	failed, err := makeSteps(ctx, env, steps, entry)
	done.Notes = end()
	for _, c := range m.Changes {
		switch why := failed[filepath.Join(w.Source, filepath.FromSlash(c.Path))]; {
		case why == nil:
			done.Changed++
		case errors.Is(why, errChanged):
			done.Conflicts = append(done.Conflicts, c.Path)
		default:
			err = errors.Join(err, fmt.Errorf("%s: %w", c.Path, why))
		}
	}
	if err != nil {
		err = fmt.Errorf("%d of %d files were applied: %w", done.Changed, len(m.Changes), err)
	}
	return done, err
}

// applying returns the steps that make the changes of a merge. What they replace and the history does not keep is
// lost: a person applies.
func applying(top string, m *worktree.Merge, principal string) (steps []journal.Step, err error) {
	for _, c := range slices.Concat(m.Changes, m.Dirs()) {
		f := journal.Step{Principal: principal, Path: filepath.Join(top, filepath.FromSlash(c.Path)),
			Staged: c.Staged, Forced: true}
		if f.Expect, err = journal.NodeAt(f.Path); err == nil && c.Staged != "" {
			f.Restore, err = journal.NodeAt(c.Staged)
			f.Restore.Stamp = ""
		}
		if err != nil {
			return nil, err
		}
		if mode := m.Mode(c); mode != 0 {
			f.Restore.Mode = mode
		}
		steps = slices.DeleteFunc(steps, func(o journal.Step) bool { return o.Path == f.Path }) // a directory replaces a file
		steps = append(steps, f)
	}
	slices.SortStableFunc(steps, journal.InOrder)
	return steps, nil
}

// writable refuses what a rule denies to Edit.
func writable(policy *guard.Policy, path string) error {
	entry, err := policy.ResolveEntry(path)
	if err != nil {
		return err
	}
	return mayWrite(policy, entry)
}
