package builtin

import (
	"context"
	"io/fs"
	"sync"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/shell"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/readstate"
	"github.com/toolhost/toolhost/resultstore"
)

// An Env is the environment of one call. The pipeline creates it from the caller's scope.
type Env struct {
	// Runtime is shared by all calls of the host.
	Runtime *Runtime
	// Principal is the caller.
	Principal string
	// Scope and Tool name the conversation and the tool, for the history.
	Scope, Tool string
	// Policy is the snapshot of the rules for this call.
	Policy *guard.Policy
	// ReadState records what the scope has read.
	ReadState *readstate.Scope
	// Results stores the caller's long results.
	Results *resultstore.PrincipalStore
	// Dir is the scope's working directory, used by Bash.
	Dir *WorkDir
	// Shell has the limits of commands.
	Shell ShellLimits
	// Execs judges the programs that a command starts. It is nil if no rule is about commands.
	Execs *Execs
	// AskHeld asks a person whether protected files that a command has changed stay, and waits for the answer. It is nil
	// if no person can be asked. AsksLater means that the question is asked by [Result].Asks.
	AskHeld   func(ctx context.Context, q ExecQuestion) ExecAnswer
	AsksLater bool
	// ClientLimits is how much of the result reaches a model.
	ClientLimits ClientLimits
	// MaskSecrets masks keys and tokens in results of other servers and of the web.
	MaskSecrets bool
	// Durable requires writes that survive a power loss.
	Durable bool
	Client

	// Agents starts agents.
	Agents agentOffer

	// Plan identifies the plan if the scope is in plan mode, whatever the settings say. "" if it is not. SetPlanning
	// changes it.
	Plan        string
	SetPlanning func(bool) error
	// ListResources and ReadResource are for the resources of other servers.
	ListResources func(ctx context.Context, server string) (string, error)
	ReadResource  func(server, uri string) (Plan, error)
	// Skills are the skills of the caller.
	Skills Skills
	// Conversation identifies the scope if it belongs to one conversation. "" if several conversations may share it.
	Conversation string
	// Worktree is the worktree in which the scope works instead of the roots of the host. It may be nil.
	Worktree *Worktree
	// WorktreeDirty copies uncommitted changes into a new worktree.
	WorktreeDirty bool
	// Visible reports whether the caller may know of a tool.
	Visible func(*Def) bool

	undo *undoModes // set for an undo, which journals its changes itself
}

// undoModes are the file modes before and after an undo.
type undoModes struct{ found, left fs.FileMode }

// ClientLimits are how many characters of a result and of an error a client passes on to a model unchanged. 0 means
// all.
type ClientLimits struct{ Result, Error int }

// Of returns the limit for a result or an error.
func (p ClientLimits) Of(isError bool) int {
	if isError && p.Error > 0 && (p.Result == 0 || p.Error < p.Result) {
		return p.Error
	}
	return p.Result
}

// ShellLimits are the limits of commands in the settings bash.*.
type ShellLimits struct {
	// Timeout is the default timeout of a command, and MaxTimeout the longest one that a call may set.
	Timeout, MaxTimeout time.Duration
	// Window is how long a call waits before its command becomes a background task.
	Window time.Duration
	// Tasks limits the running background tasks of one principal.
	Tasks int
	// KeepChanges records the content of files before commands change them.
	KeepChanges bool
}

// A WorkDir is the working directory of a scope, which lasts from one Bash call to the next, and its worktree if it
// has one.
type WorkDir struct {
	mu   sync.Mutex
	dir  string
	tree *Worktree
	// looked means that tree is valid: an earlier host may have left the scope in a worktree.
	looked bool
}

// Get returns the directory, or "" when no command has changed it yet.
func (w *WorkDir) Get() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dir
}

// Worktree returns the worktree of the scope, or nil. [Runtime.Worktree] sets it.
func (w *WorkDir) Worktree() *Worktree {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tree
}

// Set records the directory in which the last command ended.
func (w *WorkDir) Set(dir string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dir = dir
}

// Inherited returns the variables of the host's environment, as NAME=value, that commands of the caller get.
func (e *Env) Inherited() []string { return shell.Inherited(e.Policy.Commands().PassedVariables()) }
