package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/execgate"
	"github.com/toolhost/toolhost/guard/sandbox/internal/place"
)

// namespaces is the host's end of a sandbox with an init process: process 1 of
// namespaces, or the supervisor of one command under Landlock.
type namespaces struct {
	backend   Backend
	cmd       *exec.Cmd
	conn      *net.UnixConn
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

// reply is an answer of process 1.
type reply struct {
	err   error
	n     uint64
	files []int
}

// request sends a request and waits for its answer. fields appends what the
// request carries.
func (n *namespaces) request(k kind, fields func(*encoder), files ...int) (reply, error) {
	id, answer, err := n.register(nil)
	if err != nil {
		return reply{}, err
	}
	return n.exchange(k, id, answer, fields, files...)
}

// register takes a number for a request, and for the command it starts.
func (n *namespaces) register(c *nsProcess) (uint64, chan reply, error) {
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

func (n *namespaces) exchange(k kind, id uint64, answer chan reply, fields func(*encoder),
	files ...int) (reply, error) {
	m := newMessage(k, id)
	fields(m)
	if err := send(n.conn, m.buf, files...); err != nil {
		n.mu.Lock()
		delete(n.waiting, id)
		n.mu.Unlock()
		if errors.Is(err, unix.ETOOMANYREFS) {
			return reply{}, fmt.Errorf("sandbox: too many descriptors of this user are on their way through sockets; end the background commands and programs that hold them: %w", err)
		}
		return reply{}, fmt.Errorf("%w: %w", ErrClosed, err)
	}
	r, ok := <-answer
	if !ok {
		return reply{}, n.died()
	}
	return r, r.err
}

// died returns the reason why there are no more answers.
func (n *namespaces) died() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.failure
}

// receive distributes messages until process 1 is gone, and then lets everybody
// know which command waits for one.
func (n *namespaces) receive() {
	in := newReceiver(n.conn)
	in.frugal = true // what comes with an answer spares time, and a sandbox is worth more
	for {
		msg, files, err := in.next()
		if err != nil {
			break
		}
		n.deliver(&decoder{buf: msg}, files)
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
func (n *namespaces) drop(c *nsProcess) {
	if !c.dropped {
		c.dropped = true
		n.execs.Drop(c.mark)
	}
}

func (n *namespaces) deliver(d *decoder, files []int) {
	k, id := d.kind(), d.uint()
	n.mu.Lock()
	defer n.mu.Unlock()
	if k == msgExited {
		if c := n.commands[id]; c != nil {
			delete(n.commands, id)
			status := statusOf(syscall.WaitStatus(d.uint()))
			c.gone = d.bool()
			if mark := d.uint(); !c.dropped {
				c.mark = mark
				if n.execs.Bind(mark, c.gate); c.gone {
					n.drop(c)
				}
			}
			if c.end(status, nil) && !c.gone {
				go c.Kill() // nothing else will; this lock is needed for it
			}
		}
		return
	}
	r := reply{err: d.fail(), files: files, n: d.uint()}
	if c := n.commands[id]; k == msgSpawned && c != nil {
		if c.mark = r.n; r.err == nil {
			n.execs.Bind(r.n, c.gate)
		} else {
			n.execs.Drop(r.n)
		}
	}
	if d.err != nil {
		r.err = d.err
	}
	if answer := n.waiting[id]; answer != nil {
		delete(n.waiting, id)
		answer <- r
	} else {
		closeAll(files)
	}
}

// statusOf translates a wait status into the shell's terms.
func statusOf(ws syscall.WaitStatus) Status {
	if ws.Signaled() {
		return Status{ExitCode: 128 + int(ws.Signal()), Signal: unix.SignalName(ws.Signal())}
	}
	return Status{ExitCode: ws.ExitStatus()}
}

func (n *namespaces) spawn(s Spec) (Process, error) {
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
	r, err := n.exchange(msgSpawn, id, answer, func(e *encoder) {
		e.str(s.Dir)
		e.strs(s.Argv)
		e.strs(s.Env)
		e.bool(s.Terminal != nil)
	}, files...)
	if err != nil {
		n.mu.Lock()
		delete(n.commands, id)
		n.mu.Unlock()
		return nil, fmt.Errorf("sandbox: starting %s: %w", s.Argv[0], err)
	}
	c.hold(r.files)
	if s.Terminal != nil {
		s.Terminal.started()
	}
	return c, nil
}

// deny covers what exists of paths now, under all its names.
func (n *namespaces) deny(paths []string) error {
	if err := n.mountOver(msgDeny, paths); err != nil {
		return fmt.Errorf("sandbox: hiding %s: %w", strings.Join(paths, ", "), err)
	}
	return nil
}

// hold implements engine.
func (n *namespaces) hold(paths []string) error {
	if err := n.mountOver(msgHold, paths); err != nil {
		return fmt.Errorf("sandbox: keeping commands from writing %s: %w", strings.Join(paths, ", "), err)
	}
	return nil
}

// show implements engine.
func (n *namespaces) show(d Private, fresh []string) error {
	list := entriesOf(d.Name, fresh)
	if len(list) == 0 {
		return nil
	}
	if _, err := n.request(msgShow, func(e *encoder) {
		encodeTargets(e, list)
		e.strs(nil)
	}); err != nil {
		return fmt.Errorf("sandbox: showing what is in %s: %w", d.Name, err)
	}
	return nil
}

// refresh implements engine.
func (n *namespaces) refresh() error {
	_, err := n.request(msgRenew, func(*encoder) {})
	return err
}

// mountOver has process 1 mount over what exists of paths now, under all its names.
func (n *namespaces) mountOver(k kind, paths []string) error {
	pl := &plan{}
	for _, w := range n.policy.Writable {
		t, err := place.Locate(w)
		if err != nil {
			continue // a root that is gone has no names in it
		}
		pl.writable = append(pl.writable, t)
	}
	var err error
	if pl.denied, err = resolveAll(paths); err != nil {
		return err
	}
	named := len(pl.denied)
	if err := n.cover(k, pl); err != nil { // at once: other names take a walk to find
		return err
	}
	if pl.denied, err = pl.withLinks(pl.denied); err != nil || len(pl.denied) == named {
		return err
	}
	return n.cover(k, pl)
}

// cover has process 1 mount over what a plan denies.
func (n *namespaces) cover(k kind, pl *plan) error {
	if len(pl.denied) == 0 {
		return nil
	}
	pl.pins = nil
	pl.pin(nil, nil)
	denied := slices.Clone(pl.denied)
	pl.normalize()
	_, err := n.request(k, func(e *encoder) {
		encodeTargets(e, pl.denied)
		e.strs(pl.pins)
	})
	pl.denied = denied
	return err
}

// close ends process 1, whereupon the kernel kills everything inside, and waits
// for that.
func (n *namespaces) close() error {
	n.conn.CloseRead()
	n.conn.Close()
	n.cmd.Process.Kill()
	<-n.dead
	n.tun.Close() // does nothing if nil; the kernel takes 10 to 20 ms
	return nil
}
