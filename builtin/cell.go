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
	"github.com/toolhost/toolhost/guard/sandbox/connectgate"
	"github.com/toolhost/toolhost/guard/sandbox/execgate"
)

// A CellSpec describes a program, such as an agent, that runs with all its descendants in a sandbox of its own.
type CellSpec struct {
	// Argv is the program and its arguments; a name without a slash is looked up in PATH. Dir is its working
	// directory. Env is its environment, to which the variables of the sandbox are added.
	Argv []string
	Dir  string
	Env  []string
	// Files become the descriptors 0, 1 and 2. A nil file is /dev/null, or the terminal.
	Files []*os.File
	// Terminal gives it a terminal, see [Cell.Terminal].
	Terminal bool
	// Sockets are Unix sockets that the program may connect to. Ports are TCP ports on the loopback interface of the
	// host that it reaches on its own loopback interface under the same number.
	Sockets []string
	Ports   []int
	// Layers maps directories of the host, without symbolic links, to the private directories that replace them.
	// These persist. The program sees an entry of the host, read-only, if the layer has none of that name. Seed lists
	// paths in the directories. Each is copied into its layer if the layer has no entry of that name, or an older
	// file.
	Layers map[string]string
	Seed   []string

	// The fields below are for a host that starts the program.

	// Name is the name of the program in the history, the console and the audit log: "claude" appears as "run:
	// claude".
	Name string
	// Prepare, if it is not nil, completes the specification with what depends on the place of the program. dir is a
	// directory that the program can read but not write; it is removed with the cell. socket is the Unix socket in
	// dir at which the host serves MCP.
	Prepare func(spec *CellSpec, dir, socket string) error
	// Roots are the directories that the program may write. Nil: those of the host.
	Roots []string
	// Worktree is the worktree in which the program works, under the rules of the original work tree. Nil means that
	// it works in the roots.
	Worktree *Worktree
	// Agent describes the agent, if the program is one; otherwise it is zero.
	Agent agentChild
	// ReadOnly keeps the program from writing files of the roots.
	ReadOnly bool
	// Hosts may be reached in addition to sandbox.network.allowedDomains. Writable are further directories and files
	// that the program may write. Open are secrets of the home directory that it may use.
	Hosts, Writable, Open []string
	// Ask asks the operator about hosts that no list names and that the program itself connects to. About the hosts
	// of its descendants the operator is always asked. It is off for known clients, which report to hosts that they
	// do not need.
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
	// Gaps lists what the sandbox does not enforce here. It is empty unless [CellSpec].Weaker is set.
	Gaps []string
	// Closed is called once the program has ended and its changes are recorded.
	Closed func()

	runtime *Runtime
	logins  loginPublisher // nil if all ports are published
	box     *sandboxpool.Sandbox
	gate    *execGate
	mark    *commandMark
	refused func() []string
	stop    context.CancelFunc
	close   func() []string
	links   linkPlaces
}

// A loginPublisher publishes ports on which a program waits for the browser of the user.
type loginPublisher interface {
	Publish(port int, atMost time.Duration) error
}

// PrepareCell begins to examine what this machine can contain.
func (b *Runtime) PrepareCell() { go b.probe() }

// StartCell starts a program in a sandbox of its own, under the rules of the call. Its changes are recorded as those
// of a command of its tool. Without e.Execs, no person judges the programs that it starts or its hosts. The caller
// closes the cell.
func (e *Env) StartCell(ctx context.Context, spec CellSpec) (_ *Cell, err error) {
	b := e.Runtime
	agent := sandboxpool.Agent{Execs: e.Execs != nil && !spec.NoExecGate, Sockets: spec.Sockets, Layers: spec.Layers,
		Seed: spec.Seed}
	box, inner, vars, err := b.sandboxes.OpenAgent(ctx, e.Policy, agent)
	if err != nil {
		return nil, err
	}
	c := &Cell{runtime: b, box: box, refused: box.Refusing()}
	c.close = sync.OnceValue(c.end)
	defer func() {
		if err != nil {
			c.close()
		}
	}()
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
		what.Hosts = connectgate.New()
		what.Hosts.Judge(func(ctx context.Context, to connectgate.Connection) (bool, string) {
			if !spec.Ask && len(to.Chain) < 2 {
				return c.gate.Policy().Commands().ProgramReaches(to.Program, to.Host, to.Port), ""
			}
			return c.gate.Connect(ctx, to)
		})
		context.AfterFunc(life, what.Hosts.Close)
	}
	if agent.Execs {
		what.Execs = execgate.New()
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

// PublishLogin publishes a port of the program on the host for as long as a login takes.
func (c *Cell) PublishLogin(port int) error {
	if c.logins == nil {
		return nil // all ports are published
	}
	return c.logins.Publish(port, loginTime)
}

// Close ends the program and everything that it started. It returns lines of a report: programs and hosts that were
// refused, and files that the program changed. It may be called more than once.
func (c *Cell) Close() []string { return c.close() }

func (c *Cell) end() (lines []string) {
	var left int
	if c.Process != nil {
		select {
		case <-c.Done():
			left, _ = c.Kill() // the sandbox is closed even if this fails
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
	lines = append(lines, c.box.EndSession()...)
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
