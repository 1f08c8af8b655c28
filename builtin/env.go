package builtin

import (
	"context"
	"encoding/json"
	"io/fs"
	"sync"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/shell"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/readstate"
	"github.com/toolhost/toolhost/resultstore"
)

// An Env is what one call may use. The pipeline fills it for each call from the caller's scope.
type Env struct {
	// Runtime holds what all calls of this host share.
	Runtime *Runtime
	// Principal is on whose behalf the call is made.
	Principal string
	// Scope and Tool name the conversation and the tool, for the history.
	Scope, Tool string
	// Policy is the snapshot of the rules that this call sees.
	Policy *guard.Policy
	// ReadState is what the scope has read.
	ReadState *readstate.Scope
	// Results keeps the caller's long results.
	Results *resultstore.PrincipalStore
	// Dir is the scope's working directory, used by Bash.
	Dir *WorkDir
	// Shell bounds commands.
	Shell ShellLimits
	// Prelude is [guard.Verdict.Prelude] of the call.
	Prelude string
	// Execs says how the programs that a command starts are judged; nil where no rule speaks of commands.
	Execs *Execs
	// ClientLimits is how much of the result reaches a model.
	ClientLimits ClientLimits
	// Durable asks for writes that survive a power loss.
	Durable bool
	// Progress tells the client how a long call goes; nil if the client did not ask.
	Progress func(lastLines string)
	// Elicit asks the client to put the question of another server to its user while the call waits, in the types of
	// MCP: the params of elicitation/create, and its result. Nil: the client cannot be asked in the middle of a call.
	Elicit func(ctx context.Context, params json.RawMessage) (json.RawMessage, error)
	// ElicitLater says that it can be asked by the result of a call, which it then repeats: see [ExecAsked].Elicit.
	ElicitLater bool

	// Agents is what agents are started with.
	Agents agentOffer

	// CanAsk says that a person can be asked about the call.
	CanAsk bool
	// Planning says that the scope is in plan mode whatever the settings say, and SetPlanning sets that. It is kept as long as the scope.
	Planning    bool
	SetPlanning func(bool) error
	// ListResources and ReadResource are for the resources of other servers.
	ListResources func(ctx context.Context, server string) (string, error)
	ReadResource  func(server, uri string) (Plan, error)
	// Conversation identifies the scope where it is one agent's conversation alone; "" where several agents may share it.
	Conversation string
	// Worktree is where the scope works in the place of the roots of the host; nil: it works there.
	Worktree *Worktree
	// WorktreeDirty brings changes that are not committed into a new worktree.
	WorktreeDirty bool
	// Visible reports whether the caller may know of a tool.
	Visible func(*Def) bool

	undo *undoModes // of an undo, which journals its changes itself
}

// undoModes are the modes that an undo finds, and leaves.
type undoModes struct{ found, left fs.FileMode }

// ClientLimits is how many characters of a result, and of one that is an error, a client passes on to a model as they are; 0 is all.
type ClientLimits struct{ Result, Error int }

// Of is the bound for a result.
func (p ClientLimits) Of(isError bool) int {
	if isError && p.Error > 0 && (p.Result == 0 || p.Error < p.Result) {
		return p.Error
	}
	return p.Result
}

// ShellLimits bound how long commands run, as the settings bash.* say.
type ShellLimits struct {
	// Timeout is how long a command may run when the call does not say, and MaxTimeout the longest time a
	// call may ask for.
	Timeout, MaxTimeout time.Duration
	// Window is how long a call is held before its command becomes a background task.
	Window time.Duration
	// Tasks is how many background tasks of one principal run at once.
	Tasks int
	// KeepChanges keeps what files held before commands changed them.
	KeepChanges bool
}

// A WorkDir is where a scope works: in a directory, which carries over from one Bash call to the next, and perhaps in a worktree.
type WorkDir struct {
	mu   sync.Mutex
	dir  string
	tree *Worktree
	// looked says that tree is known: an earlier host may have left the scope in a worktree.
	looked bool
}

// Get returns the directory, or "" when no command has changed it yet.
func (w *WorkDir) Get() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dir
}

// Worktree returns the worktree that the scope works in, nil if it works in none. [Runtime.Worktree] finds that out.
func (w *WorkDir) Worktree() *Worktree {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tree
}

// Set records where the last command ended.
func (w *WorkDir) Set(dir string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dir = dir
}

// Inherited returns the variables of the host's environment, as NAME=value, that commands of the caller get.
func (e *Env) Inherited() []string { return shell.Inherited(e.Policy.Commands().PassedVariables()) }
