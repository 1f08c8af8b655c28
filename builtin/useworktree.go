package builtin

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/builtin/internal/worktree"
	"github.com/toolhost/toolhost/guard"
)

// enterWorktreeInput is the input of [enterWorktreeTool].
type enterWorktreeInput struct {
	Name string `json:"name,omitempty" jsonschema:"the branch is toolhost/NAME (default: made up)"`
	Base string `json:"base,omitempty" jsonschema:"branch, tag or commit to begin at (default: HEAD)"`
}

// maxWorktreeName is the longest name of a worktree, in characters.
const maxWorktreeName = 64

// leaveWait is how long leaving a worktree waits for commands that were just stopped.
const leaveWait = time.Second

// maxEntered is how many conversations of a caller may be in worktrees at the same time.
const maxEntered = 32

// worktreeName matches names of worktrees, which become parts of the name of a branch.
var worktreeName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_-])?(/[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_-])?)*$`)

// hasWorktrees reports whether worktrees can be kept.
func hasWorktrees(b *Runtime) bool { return b.worktrees != (worktree.Room{}) }

// errOthersWorktree refuses a worktree to a caller with a root of its own.
var errOthersWorktree = errors.New("a worktree shows the whole repository with its history, and files of other " +
	"callers may be in it: work in the root of this caller")

// enterWorktreeTool moves the scope into a worktree.
var enterWorktreeTool = declare(Tool[enterWorktreeInput]{
	Name: "EnterWorktree", Title: "Enter a worktree", Brief: "work on a copy of the repository, on a branch of its own",
	OptIn: true, Enabled: hasWorktrees, Hints: Hints{Additive: true, Closed: true}, Permission: guard.ToWrite,
	MaxResult:  4000,
	Configured: func(p *guard.Policy) bool { return !p.HasOthers() },
	Plan: func(_ context.Context, env *Env, in enterWorktreeInput) (Plan, error) {
		switch {
		case env.Policy.HasOthers():
			return Plan{}, errOthersWorktree
		case env.Conversation == "":
			return Plan{}, errors.New("a worktree is entered by one conversation, and several agents may share this one: all " +
				"of them would be moved. " +
				`The client must name the conversation: "toolhost/session": "new" in _meta gives it a handle, and threadId names one`)
		case env.Worktree != nil:
			return Plan{}, fmt.Errorf("this conversation is in the worktree %s already: leave it with ExitWorktree first",
				env.Worktree.Tree())
		case in.Name != "" && (len(in.Name) > maxWorktreeName || !worktreeName.MatchString(in.Name) ||
			dotLock.MatchString(in.Name)):
			return Plan{}, fmt.Errorf("name: expected up to %d letters, digits, dots, dashes or underscores, in parts "+
				"separated by /, got %.100q", maxWorktreeName, in.Name)
		}
		branch := in.Name
		if branch == "" {
			branch = "(a new one)"
		}
		return Plan{
			Intent: guard.Intent{Effects: []guard.Effect{guard.UseWorktree{Branch: branch}}},
			Run:    func(ctx context.Context) (Result, error) { return enterWorktree(ctx, env, in) },
		}, nil
	},
})

// dotLock matches names that git refuses.
var dotLock = regexp.MustCompile(`\.lock(/|$)|\.\.`)

// enterWorktree makes a worktree, or takes over one that the caller kept under that name, and moves the scope there.
func enterWorktree(ctx context.Context, env *Env, in enterWorktreeInput) (Result, error) {
	dir, _, err := workDir(env)
	if err != nil {
		return Result{}, err
	}
	if n := env.Runtime.entered.count(env.Principal); n >= maxEntered {
		return Result{}, fmt.Errorf("too many conversations of this caller work in worktrees (limit: %d): leave one with "+
			"ExitWorktree", n)
	}
	w, again, err := env.conversationTree(ctx, dir.Real(), in)
	if err != nil {
		return Result{}, err
	}
	env.Runtime.entered.enter(env, w)
	what := fmt.Sprintf("made from %.12s", w.Base)
	if again {
		what = "taken up again"
	}
	text := fmt.Sprintf("This conversation now works in the worktree %s (branch %s, %s), as if that were %s, which can "+
		"only be read until ExitWorktree. "+
		"Use paths in the worktree, or relative ones. Nothing is merged: ExitWorktree commits what is left and names the branch.", w.Dir(), w.BranchName(), what, w.Source)
	if !env.Policy.Commands().Containment().Writes {
		text += " No sandbox holds commands here: they must keep away from the checkout by themselves."
	}
	return Result{Text: text, Structured: worktreeOutput{Path: w.Dir(), Branch: w.BranchName(), Base: w.Base}}, nil
}

// worktreeOutput is the structured output about a worktree.
type worktreeOutput struct {
	Path   string `json:"path"` // where the conversation works
	Branch string `json:"branch,omitempty"`
	Base   string `json:"base,omitempty"`
	Commit string `json:"commit,omitempty"`
	Diff   string `json:"diff,omitempty"`
	Merge  string `json:"merge,omitempty"`
}

// exitWorktreeInput is the input of [exitWorktreeTool].
type exitWorktreeInput struct {
	Keep *bool `json:"keep,omitempty" jsonschema:"keep the branch with what was done (default: true)"`
}

// exitWorktreeTool moves the scope back.
var exitWorktreeTool = declare(Tool[exitWorktreeInput]{
	Name: "ExitWorktree", Title: "Leave the worktree", Brief: "leave the worktree, keeping its branch",
	OptIn: true, Enabled: hasWorktrees, Hints: Hints{Closed: true}, Permission: guard.ToWrite, MaxResult: 4000,
	Uncancelable: true,
	Refine:       func(s *jsonschema.Schema) { s.Properties["keep"].Type, s.Properties["keep"].Types = "boolean", nil },
	Plan: func(ctx context.Context, env *Env, in exitWorktreeInput) (Plan, error) {
		w := env.Worktree
		if w == nil {
			return Plan{}, errors.New("this conversation is in no worktree: there is nothing to leave")
		}
		effect := guard.UseWorktree{Branch: w.BranchName(), Leaving: true}
		if in.Keep != nil && !*in.Keep {
			var err error
			if effect.Discard, err = w.Work(ctx); err != nil {
				return Plan{}, err
			}
		}
		return Plan{
			Intent: guard.Intent{Effects: []guard.Effect{effect}},
			Run: func(ctx context.Context) (Result, error) {
				return exitWorktree(ctx, env, w, effect.Discard != "")
			},
		}, nil
	},
})

// exitWorktree commits the changes in the scope's worktree, and moves the scope back. With discard it then removes
// the worktree.
func exitWorktree(ctx context.Context, env *Env, w *Worktree, discard bool) (Result, error) {
	report, err := w.Leave(ctx)
	for end := time.Now().Add(leaveWait); errors.Is(err, worktree.ErrInUse) &&
		time.Now().Before(end); report, err = w.Leave(ctx) {
		time.Sleep(leaveWait / 50)
	}
	if errors.Is(err, worktree.ErrInUse) {
		return Result{}, fmt.Errorf("commands or agents still run in the worktree: stop them with TaskStop, or wait for "+
			"them with TaskOutput, and then leave: %w", err)
	}
	if err != nil {
		return Result{}, err
	}
	back := env.Runtime.entered.leave(env, w)
	text := fmt.Sprintf("This conversation works in %s again.", back)
	out := worktreeOutput{Path: back}
	switch {
	case discard:
		err = w.Discard(ctx)
		text += fmt.Sprintf(" The worktree and its branch were removed, as the person agreed. Until git collects garbage, "+
			"git branch NAME %.12s brings the work back.", report.Commit)
	case report.Branch == "":
		text += " Nothing was changed in the worktree, and it was removed."
	default:
		out = worktreeOutput{back, report.Branch, w.Base, report.Commit,
			fmt.Sprintf("git diff %.12s...%s", w.Base, report.Branch), "git merge " + report.Branch}
		text += " What was done is kept, and not merged:\n" + w.Summary()
	}
	return Result{Text: text, Structured: out}, errors.Join(err, w.Close())
}
