package sandbox

import (
	"context"
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
)

// namespaces is the host's end of a sandbox with a guardian: process 1 of
// namespaces, or the supervisor of one command under Landlock.
type namespaces struct {
	backend   Backend
	cmd       *exec.Cmd
	conn      *net.UnixConn
	complain  *os.File // what process 1 wrote to its standard error
	orphans   int      // list of the children of process 1, which commands left behind; or -1
	policy    Policy
	proxyPort int        // of the proxy's socket inside, or 0
	judged    bool       // the host makes the connections of commands
	execs     *execMarks // or nil: programs are not judged

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

// startNamespaces starts process 1 of new namespaces, whose connections k makes, unless
// it is nil. listener is the proxy's socket inside, nil with an unrestricted network.
func startNamespaces(ctx context.Context, p Policy, o Options, k *connector) (n *namespaces, listener net.Listener, err error) {
	pl, err := resolve(p)
	if err != nil {
		return nil, nil, err
	}
	pl.judged, pl.execs = k != nil, p.Execs
	n, files, err := startGuardian(ctx, Namespaces, pl, o.Executable, namespaceAttributes(pl.network))
	if err != nil {
		return nil, nil, err
	}
	n.policy = p
	defer func() {
		if err != nil {
			n.close()
		}
	}()
	if !pl.network {
		if listener, err = fileListener(files[0]); err != nil {
			closeAll(files[1:])
			return nil, nil, err
		}
		n.proxyPort = listener.Addr().(*net.TCPAddr).Port
		files = files[1:]
	}
	n.judged = len(files) == 2
	if pl.execs {
		if n.execs, err = newExecMarks(n.cmd.Process.Pid); err != nil {
			closeAll(files)
			return nil, nil, err
		}
	}
	return n, listener, serveCalls(files, k, n.execs.answer)
}

// startGuardian starts ourselves as the guardian of commands and waits until it
// is ready; files is what it sent with that message.
func startGuardian(ctx context.Context, b Backend, pl *plan, executable string, attr *syscall.SysProcAttr) (n *namespaces, files []int, err error) {
	n = &namespaces{
		backend: b, waiting: make(map[uint64]chan reply), commands: make(map[uint64]*nsProcess),
		dead: make(chan struct{}),
	}
	if err := n.exec(pl, executable, attr); err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { n.cmd.Process.Kill() })
	defer stop()
	if files, err = n.ready(); err != nil {
		n.conn.Close()
		n.cmd.Wait()
		defer n.complain.Close()
		if ctx.Err() != nil {
			return nil, nil, fmt.Errorf("sandbox: start: %w", context.Cause(ctx))
		}
		return nil, nil, n.startFailure(err)
	}
	if n.orphans, err = openChildren(n.cmd.Process.Pid, n.cmd.Process.Pid); err != nil {
		n.orphans = -1
	}
	go n.receive()
	return n, files, nil
}

// exec starts process 1, which gets the socket and the plan, an empty
// environment and nothing else.
func (n *namespaces) exec(pl *plan, executable string, attr *syscall.SysProcAttr) error {
	e := &encoder{}
	pl.encode(e)
	planFD, err := memoryFile("plan", e.buf)
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	planFile := os.NewFile(uintptr(planFD), "plan")
	defer planFile.Close()
	complainFD, err := memoryFile("errors", nil)
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	n.complain = os.NewFile(uintptr(complainFD), "errors")
	ours, theirs, err := socketPair()
	if err != nil {
		n.complain.Close()
		return err
	}
	defer theirs.Close()
	n.conn = ours
	if executable == "" {
		executable = "/proc/self/exe" // also where the file was replaced or cannot be reached by name
	}
	n.cmd = exec.Command(executable)
	n.cmd.Args = []string{"toolhost", initArg, string(n.backend)}
	n.cmd.Env = []string{"GOMAXPROCS=2", "GOTRACEBACK=none"}
	n.cmd.Dir = "/"
	n.cmd.Stderr = n.complain
	n.cmd.ExtraFiles = []*os.File{theirs, planFile}
	n.cmd.SysProcAttr = attr
	if err := n.cmd.Start(); err != nil {
		n.conn.Close()
		n.complain.Close()
		return n.unavailable(err)
	}
	return nil
}

// namespaceAttributes asks for the namespaces, with our own user and group
// under their own numbers, and the capabilities process 1 needs in them.
func namespaceAttributes(hostNetwork bool) *syscall.SysProcAttr {
	flags := unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	if !hostNetwork {
		flags |= unix.CLONE_NEWNET
	}
	uid, gid := os.Geteuid(), os.Getegid()
	return &syscall.SysProcAttr{
		Cloneflags:  uintptr(flags),
		UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}},
		AmbientCaps: []uintptr{
			unix.CAP_SYS_ADMIN,  // mounts, UTS namespaces
			unix.CAP_SETPCAP,    // emptying the bounding set
			unix.CAP_NET_ADMIN,  // the loopback interface
			unix.CAP_SYS_PTRACE, // seeing the namespaces of commands
			unix.CAP_KILL,
			unix.CAP_SYS_RESOURCE, // limits of the user namespace
		},
		Setsid: true,
	}
}

func socketPair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("sandbox: socket pair: %w", err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "control")
	ours := os.NewFile(uintptr(fds[0]), "control")
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		theirs.Close()
		return nil, nil, fmt.Errorf("sandbox: socket pair: %w", err)
	}
	return conn.(*net.UnixConn), theirs, nil
}

func fileListener(fd int) (net.Listener, error) {
	f := os.NewFile(uintptr(fd), "proxy")
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("sandbox: proxy: %w", err)
	}
	return l, nil
}

// ready waits for the first message.
func (n *namespaces) ready() ([]int, error) {
	msg, files, err := newReceiver(n.conn).next()
	if err != nil {
		return nil, err
	}
	d := &decoder{buf: msg}
	if d.kind() != msgReady || d.uint() != 0 {
		closeAll(files)
		return nil, errMalformed
	}
	if err := errors.Join(d.fail(), d.err); err != nil {
		closeAll(files)
		return nil, err
	}
	return files, nil
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

func (n *namespaces) exchange(k kind, id uint64, answer chan reply, fields func(*encoder), files ...int) (reply, error) {
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

// died is why there are no more answers.
func (n *namespaces) died() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.failure
}

// receive distributes messages until process 1 is gone, and then lets everybody
// know who waits for one.
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
	n.execs.close()
	close(n.dead)
}

// drop forgets the namespace of a command that has no processes, once: its number may then be that of another command. The caller
// holds the lock.
func (n *namespaces) drop(c *nsProcess) {
	if !c.dropped {
		c.dropped = true
		n.execs.drop(c.mark)
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
				if n.execs.bind(mark, c.gate); c.gone {
					n.drop(c)
				}
			}
			if c.end(status, nil) && !c.gone {
				go c.Kill() // no one else will; this lock is needed for it
			}
		}
		return
	}
	r := reply{err: d.fail(), files: files, n: d.uint()}
	if c := n.commands[id]; k == msgSpawned && c != nil {
		if c.mark = r.n; r.err == nil {
			n.execs.bind(r.n, c.gate)
		} else {
			n.execs.drop(r.n)
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
	files, release, err := descriptors(s.Files)
	if err != nil {
		return nil, err
	}
	defer release()
	c := &nsProcess{host: n, gate: s.Execs, ended: make(chan struct{}), pidfd: -1, children: -1, files: -1}
	id, answer, err := n.register(c)
	if err != nil {
		return nil, err
	}
	r, err := n.exchange(msgSpawn, id, answer, func(e *encoder) {
		e.str(s.Dir)
		e.strs(s.Argv)
		e.strs(s.Env)
	}, files...)
	if err != nil {
		n.mu.Lock()
		delete(n.commands, id)
		n.mu.Unlock()
		return nil, fmt.Errorf("sandbox: starting %s: %w", s.Argv[0], err)
	}
	c.hold(r.files)
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

// mountOver has process 1 mount over what exists of paths now, under all its names.
func (n *namespaces) mountOver(k kind, paths []string) error {
	pl := &plan{}
	for _, w := range n.policy.Writable {
		t, err := locate(w)
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
	return nil
}
