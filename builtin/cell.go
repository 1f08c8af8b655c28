package builtin

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/sandboxpool"
	"github.com/toolhost/toolhost/builtin/internal/shell"
	"github.com/toolhost/toolhost/guard/sandbox"
	"github.com/toolhost/toolhost/guard/settle"
)

// A CellSpec describes a program that runs as a whole, with all that it starts, in a sandbox of its own: an agent.
type CellSpec struct {
	// Argv is the program and its arguments; a name without a slash is looked up in PATH. Dir is where it starts, Env
	// its environment, to which the variables of the sandbox are added.
	Argv []string
	Dir  string
	Env  []string
	// Files become its descriptors 0, 1 and 2. Nil ones are /dev/null, or the terminal.
	Files []*os.File
	// Terminal gives it a terminal, see [Cell.Terminal].
	Terminal bool
	// Sockets are Unix sockets that it may connect to, and Ports TCP ports on the loopback interface of the host that it
	// finds on its own.
	Sockets []string
	Ports   []int
	// Layers are directories of the host, without symbolic links, and the private ones in their places, which persist.
	// The program sees the host's entries, read-only, where the layer has none of that name. Seed lists paths in those
	// directories; each is copied into a layer that has no entry of that name, or an older file.
	Layers map[string]string
	Seed   []string

	// The fields below are for a host that starts the program.

	// Name is how the history, the console and the audit log call the program: "claude" is "run: claude" there.
	Name string
	// Prepare, if it is not nil, adds to the specification what depends on the place of the program: dir is a directory
	// that the program can read and not write, which is removed with the cell, and socket is the Unix socket in it at
	// which the host serves MCP.
	Prepare func(spec *CellSpec, dir, socket string) error
	// Roots are the directories that the program may write. Nil: those of the host.
	Roots []string
	// Worktree is where the program works instead, under the rules of the work tree that it was made of. Nil: it does not.
	Worktree *Worktree
	// Agent is the agent that the program is; zero: it is none.
	Agent agentChild
	// ReadOnly keeps it from writing files of the roots.
	ReadOnly bool
	// Hosts are reached in addition to sandbox.network.allowedDomains, Writable are further directories and files that
	// the program may write, and Open are secrets of the home directory that it may use.
	Hosts, Writable, Open []string
	// Ask puts hosts that no list names and the program itself connects to, to the operator. Those of the programs that
	// it starts always are: a client that is known reports to hosts that it does not need.
	Ask bool
	// NoExecGate starts programs without judging them.
	NoExecGate bool
	// Weaker runs the program also where the sandbox holds less than everything. [Cell.Gaps] says what is missing.
	Weaker bool
}

// A Cell is a program that runs in a sandbox of its own.
type Cell struct {
	sandbox.Process
	// Terminal is the host's end of the program's terminal; nil if it has none.
	Terminal *sandbox.Terminal
	// Gaps says what the sandbox does not hold here. It is empty but with [CellSpec].Weaker.
	Gaps []string
	// Closed is called once the program has ended and its changes are recorded.
	Closed func()

	runtime *Runtime
	logins  loginPublisher // nil: all ports are published
	box     *sandboxpool.Sandbox
	gate    *execGate
	mark    *commandMark
	refused func() []string
	cleanup func() []string
	// settling is the program as the keeper of protected files knows it: a task.
	settling *settle.Command
	stop     context.CancelFunc
	close    func() []string
	links    linkPlaces
}

// A loginPublisher publishes ports at which a program waits for the browser of the user.
type loginPublisher interface {
	Publish(port int, atMost time.Duration) error
}

// PrepareCell begins to find out what this machine can contain.
func (b *Runtime) PrepareCell() { go b.probe() }

// StartCell starts a program in a sandbox of its own, under the rules of the call. What it changes is recorded as the
// command of its tool. Without e.Execs neither the programs that it starts nor its hosts are judged by a person. The
// caller closes the cell.
func (e *Env) StartCell(ctx context.Context, spec CellSpec) (_ *Cell, err error) {
	b := e.Runtime
	agent := sandboxpool.Agent{Execs: e.Execs != nil && !spec.NoExecGate, Sockets: spec.Sockets, Layers: spec.Layers,
		Seed: spec.Seed}
	box, inner, vars, err := b.sandboxes.OpenAgent(ctx, e.Policy, agent)
	if err != nil {
		return nil, err
	}
	c := &Cell{runtime: b, box: box, refused: box.Refusing(), cleanup: b.sandboxes.Cleanup()}
	c.close = sync.OnceValue(c.end)
	var before []string
	if c.settling, before, err = b.sandboxes.Enter(box); err == nil {
		before = append(before, c.settling.Background()...)
	}
	for _, note := range before {
		b.log.Warn(note)
	}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	if err != nil {
		return nil, err
	}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	if !e.Policy.Commands().Network().Publish {
		c.logins = inner.PublishLogins(life, b.log)
	}
	c.links = notePlaces(spec.Writable)
	for _, port := range spec.Ports {
		if err := inner.Forward(life, port); err != nil {
			return nil, err
		}
	}
	what := sandbox.Spec{Argv: spec.Argv, Dir: spec.Dir, Files: spec.Files}
	// A variable is set once: most programs take the first of two values, shells the last.
	what.Env = (&exec.Cmd{Env: slices.Concat(spec.Env,
		shell.Without(e.Policy.Commands().Environment(), e.Policy.Commands().SecretVariables()), vars)}).Environ()
	if e.Execs != nil {
		c.gate = newExecGate(*e.Execs)
		c.gate.leaves()
		c.gate.lasting = true
		what.Hosts = sandbox.NewHostGate()
		what.Hosts.Judge(func(ctx context.Context, to sandbox.Connection) (bool, string) {
			if !spec.Ask && len(to.Chain) < 2 {
				return c.gate.Policy().Commands().ProgramReaches(to.Program, to.Host, to.Port), ""
			}
			return c.gate.Connect(ctx, to)
		})
		context.AfterFunc(life, what.Hosts.Close)
	}
	if agent.Execs {
		what.Execs = sandbox.NewExecGate()
		what.Execs.Judge(c.gate.Judge)
		context.AfterFunc(life, what.Execs.Close)
	}
	if spec.Terminal {
		if c.Terminal, err = inner.Terminal(); err != nil {
			return nil, err
		}
		what.Terminal = c.Terminal
	}
	c.mark = b.beginCommand(ctx, e, strings.Join(spec.Argv, " "), true)
	c.Process, err = inner.Spawn(what)
	return c, err
}

// loginTime bounds how long a port is published for a login.
const loginTime = 10 * time.Minute

// PublishLogin has a port that the program listens on reached on the host, for as long as a login takes.
func (c *Cell) PublishLogin(port int) error {
	if c.logins == nil {
		return nil // as all ports are
	}
	return c.logins.Publish(port, loginTime)
}

// Close ends the program and everything that it started. It returns lines of a report: programs and hosts that were
// refused, and files that the program changed. It may be called again.
func (c *Cell) Close() []string { return c.close() }

func (c *Cell) end() (lines []string) {
	var left int
	if c.Process != nil {
		select {
		case <-c.Done():
			left, _ = c.Kill() // the sandbox is closed all the same
		default:
			_, _ = c.Kill()
		}
	}
	if left > 0 {
		lines = append(lines, fmt.Sprintf("%s still ran when it ended and %s ended.", count(left, "process"),
			plural(left, "was", "were")))
	}
	if c.gate != nil {
		lines = append(lines, c.gate.lines()...)
	}
	lines = append(lines, c.refused()...)
	lines = append(lines, c.cleanup()...)
	if c.settling != nil {
		lines = append(lines, c.settling.End()...)
	}
	lines = append(lines, c.links.removeNew()...)
	if c.mark != nil {
		lines = append(lines, c.mark.end().lines()...)
	}
	if c.stop != nil {
		c.stop()
	}
	c.runtime.sandboxes.Release(c.box)
	if c.Terminal != nil {
		c.Terminal.Close()
	}
	if c.Closed != nil {
		c.Closed()
	}
	return lines
}
