package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/execgate"
	"github.com/toolhost/toolhost/guard/sandbox/internal/contract"
	"github.com/toolhost/toolhost/guard/sandbox/internal/place"
)

// insideProcess is the host's end of a sandbox with an init process: process 1 of
// namespaces, or the supervisor of one command under Landlock.
type insideProcess struct {
	backend   Backend
	cmd       *exec.Cmd
	conn      *contract.Conn
	plan      *os.File // the pipe that carries the plan to process 1
	complain  *os.File // what process 1 wrote to its standard error
	orphans   int      // list of the children of process 1, which are left over from commands; or -1
	policy    Policy
	proxyPort int             // of the proxy's socket inside, or 0
	tun       *os.File        // the network of commands, or nil
	noTUN     error           // why they have none
	noOverlay error           // why a directory is read-only that commands were to write in an overlay
	cached    []string        // see [Sandbox.Cached]
	judged    bool            // the host makes the connections of commands
	execs     *execgate.Marks // or nil: programs are not judged

	mu       sync.Mutex
	last     uint64                // number of the last request or command
	waiting  map[uint64]chan reply // requests without an answer
	commands map[uint64]*nsProcess // commands that run
	failure  error                 // why there will be no more answers
	dead     chan struct{}         // closed once failure is set and process 1 is gone
}

// reply is an answer of process 1, with its descriptors.
type reply struct {
	contract.Event
	files []int
}

// request sends a request and waits for its answer.
func (n *insideProcess) request(r contract.Request) (reply, error) {
	id, answer, err := n.register(nil)
	if err != nil {
		return reply{}, err
	}
	r.ID = id
	return n.exchange(r, answer)
}

// register takes a number for a request, and for the command it starts.
func (n *insideProcess) register(c *nsProcess) (uint64, chan reply, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.failure != nil {
		return 0, nil, n.failure
	}
	n.last++
	answer := make(chan reply, 1)
	n.waiting[n.last] = answer
	if c != nil {
		c.id = n.last
		n.commands[n.last] = c
	}
	return n.last, answer, nil
}

func (n *insideProcess) exchange(request contract.Request, answer chan reply, files ...int) (reply, error) {
	if err := n.conn.Send(request, files...); err != nil {
		n.mu.Lock()
		delete(n.waiting, request.ID)
		n.mu.Unlock()
		if errors.Is(err, unix.ETOOMANYREFS) {
			return reply{}, fmt.Errorf("sandbox: too many descriptors of this user are on their way through sockets; end the "+
				"background commands and programs that hold them: %w", err)
		}
		return reply{}, fmt.Errorf("%w: %w", ErrClosed, err)
	}
	r, ok := <-answer
	if !ok {
		return reply{}, n.died()
	}
	return r, r.Err
}

// died returns the reason why there are no more answers.
func (n *insideProcess) died() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.failure
}

// receive distributes messages until process 1 is gone, and then lets everybody
// know which command waits for one.
func (n *insideProcess) receive() {
	n.conn.Frugal = true // a sandbox is worth more than the descriptors of an answer, which only save time
	for {
		event, files, err := n.conn.Event()
		if err != nil {
			break
		}
		n.deliver(event, files)
	}
	n.conn.Close()
	n.cmd.Wait() // ends when the kernel has killed everything inside
	failure := ErrClosed
	if text := n.complaint(); text != "" {
		failure = fmt.Errorf("%w: %s", ErrClosed, text)
	}
	n.complain.Close()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failure = failure
	for _, answer := range n.waiting {
		close(answer)
	}
	for _, c := range n.commands {
		c.end(Status{}, failure)
	}
	clear(n.waiting)
	clear(n.commands)
	unix.Close(n.orphans) // no command is left that would look
	n.execs.Close()
	close(n.dead)
}

// drop forgets the namespace of a command that has no processes, once: its number may then be that of another
// command. The caller holds the lock.
func (n *insideProcess) drop(c *nsProcess) {
	if !c.dropped {
		c.dropped = true
		n.execs.Drop(c.mark)
	}
}

func (n *insideProcess) deliver(event contract.Event, files []int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.commands[event.ID]
	switch {
	case event.Kind == contract.Exited:
		if c != nil {
			n.exited(c, event)
		}
		return
	case event.Kind == contract.Spawned && c == nil: // it has ended already
		contract.CloseAll(files)
		files = nil
	case event.Kind == contract.Spawned:
		c.hold(files) // before the command can be found by its mark
		files = nil
		if c.mark = event.Mark; event.Err == nil {
			n.execs.Bind(c.mark, c.gate)
		} else {
			n.execs.Drop(c.mark)
		}
	}
	if answer := n.waiting[event.ID]; answer != nil {
		delete(n.waiting, event.ID)
		answer <- reply{event, files}
	} else {
		contract.CloseAll(files)
	}
}

// exited notes the end of a command. The caller holds the lock.
func (n *insideProcess) exited(c *nsProcess, event contract.Event) {
	delete(n.commands, event.ID)
	c.gone = event.Gone
	if !c.dropped {
		c.mark = event.Mark
		if n.execs.Bind(c.mark, c.gate); c.gone {
			n.drop(c)
		}
	}
	if c.end(statusOf(event.Status), nil) && !c.gone {
		go c.Kill() // nothing else will; the lock is needed for it
	}
}

// statusOf translates a wait status into the shell's terms.
func statusOf(ws syscall.WaitStatus) Status {
	s := Status{ExitCode: contract.ExitCode(ws)}
	if ws.Signaled() {
		s.Signal = unix.SignalName(ws.Signal())
	}
	return s
}

func (n *insideProcess) spawn(s Spec) (Process, error) {
	if s.Execs != nil && n.execs == nil && n.backend == Namespaces {
		return nil, errors.New("sandbox: a command whose programs are to be judged needs a sandbox with Policy.Execs")
	}
	if s.Terminal != nil {
		s.Files = s.Terminal.files(s.Files)
	}
	files, release, err := descriptors(s.Files)
	if err != nil {
		return nil, err
	}
	defer release()
	c := &nsProcess{host: n, gate: s.Execs, hosts: s.Hosts, ended: make(chan struct{}), pidfd: -1,
		children: -1, files: -1}
	id, answer, err := n.register(c)
	if err != nil {
		return nil, err
	}
	if _, err := n.exchange(contract.Request{Kind: contract.Spawn, ID: id, Dir: s.Dir, Argv: s.Argv, Env: s.Env,
		Terminal: s.Terminal != nil},
		answer, files...); err != nil {
		n.mu.Lock()
		delete(n.commands, id)
		n.mu.Unlock()
		return nil, fmt.Errorf("sandbox: starting %s: %w", s.Argv[0], err)
	}
	if s.Terminal != nil {
		s.Terminal.started()
	}
	return c, nil
}

// deny covers what exists of paths now, under all its names.
func (n *insideProcess) deny(paths []string) error {
	if err := n.mountOver(contract.Deny, paths); err != nil {
		return fmt.Errorf("sandbox: hiding %s: %w", strings.Join(paths, ", "), err)
	}
	return nil
}

// hold implements engine.
func (n *insideProcess) hold(paths []string) error {
	if err := n.mountOver(contract.Hold, paths); err != nil {
		return fmt.Errorf("sandbox: keeping commands from writing %s: %w", strings.Join(paths, ", "), err)
	}
	return nil
}

// show implements engine.
func (n *insideProcess) show(d Private, fresh []string) error {
	list := entriesOf(d.Name, fresh)
	if len(list) == 0 {
		return nil
	}
	if _, err := n.request(contract.Request{Kind: contract.Show, Objects: list}); err != nil {
		return fmt.Errorf("sandbox: showing what is in %s: %w", d.Name, err)
	}
	return nil
}

// refresh implements engine.
func (n *insideProcess) refresh() error {
	_, err := n.request(contract.Request{Kind: contract.Refresh})
	return err
}

// mountOver has process 1 mount over what exists of paths now, under all its names.
func (n *insideProcess) mountOver(k contract.Kind, paths []string) error {
	pl := &plan{}
	for _, w := range n.policy.Writable {
		t, err := place.Locate(w)
		if err != nil {
			continue // a root that is gone has no names in it
		}
		pl.Writable = append(pl.Writable, t)
	}
	var err error
	if pl.Denied, err = resolveAll(paths); err != nil {
		return err
	}
	named := len(pl.Denied)
	if err := n.cover(k, pl); err != nil { // at once, because finding other names takes a walk
		return err
	}
	if pl.Denied, err = pl.withLinks(pl.Denied); err != nil || len(pl.Denied) == named {
		return err
	}
	return n.cover(k, pl)
}

// cover has process 1 mount over what a plan denies.
func (n *insideProcess) cover(k contract.Kind, pl *plan) error {
	if len(pl.Denied) == 0 {
		return nil
	}
	pl.Pins = nil
	pl.pin(nil, nil)
	denied := slices.Clone(pl.Denied)
	pl.normalize()
	_, err := n.request(contract.Request{Kind: k, Objects: pl.Denied, Pins: pl.Pins})
	pl.Denied = denied
	return err
}

// close ends process 1, whereupon the kernel kills everything inside, and waits
// for that.
func (n *insideProcess) close() error {
	n.conn.Close()
	n.cmd.Process.Kill()
	<-n.dead
	n.tun.Close() // does nothing if nil; the kernel takes 10 to 20 ms
	return nil
}
