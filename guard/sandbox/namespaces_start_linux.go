package sandbox

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/connectgate"
	"github.com/toolhost/toolhost/guard/sandbox/execgate"
	"github.com/toolhost/toolhost/guard/sandbox/internal/contract"
	"github.com/toolhost/toolhost/guard/sandbox/internal/proc"
	_ "github.com/toolhost/toolhost/guard/sandbox/internal/supervisor" // whose init function is the process inside
)

// startNamespaces starts process 1 of new namespaces. Unless k is nil, it makes the connections of commands. listener
// is the proxy's socket inside.
func startNamespaces(ctx context.Context, p Policy, o Options,
	k *connectgate.Connector) (n *insideProcess, listener net.Listener,
	err error) {
	pl, err := resolve(p)
	if err != nil {
		return nil, nil, err
	}
	pl.Judged, pl.Execs, pl.Writes = k != nil, p.Execs, o.Writes != nil
	owners := findOwners(&pl.Plan)
	pl.Owners = !owners.none()
	var waiting *insideProcess
	if o.Ahead && !pl.Owners {
		if begun := ahead.Swap(nil); begun != nil {
			waiting = (*begun)()
		}
	}
	n, files, err := startInit(ctx, waiting, Namespaces, &pl.Plan, namespaceAttributes(owners))
	if err != nil {
		return nil, nil, err
	}
	n.policy = p
	defer func() {
		if err != nil {
			n.close()
		}
	}()
	if listener, err = fileListener(files[0]); err != nil {
		contract.CloseAll(files[1:])
		return nil, nil, err
	}
	n.proxyPort = listener.Addr().(*net.TCPAddr).Port
	if files = files[1:]; n.noTUN == nil {
		n.tun, files = os.NewFile(uintptr(files[0]), "tun"), files[1:]
	}
	n.judged = len(files) == 2
	if pl.Execs {
		if n.execs, err = execgate.NewMarks(n.cmd.Process.Pid); err != nil {
			contract.CloseAll(files)
			return nil, nil, err
		}
	}
	return n, listener, serveCalls(files, k, n.execs.Answer, o.Writes)
}

// startInit gives the init process n its plan and waits until it is ready. If n is nil, it starts one first. files are
// the descriptors that the process sent when it was ready.
func startInit(ctx context.Context, n *insideProcess, b Backend, pl *contract.Plan,
	attr *syscall.SysProcAttr) (_ *insideProcess, files []int, err error) {
	if n == nil {
		if n, err = newInit(b, attr); err != nil {
			return nil, nil, err
		}
	}
	stop := context.AfterFunc(ctx, func() { n.cmd.Process.Kill() })
	defer stop()
	n.tell(pl)
	if files, err = n.ready(); err != nil {
		n.conn.Close()
		n.cmd.Wait()
		defer n.complain.Close()
		if ctx.Err() != nil {
			return nil, nil, fmt.Errorf("sandbox: start: %w", context.Cause(ctx))
		}
		return nil, nil, n.startFailure(err)
	}
	if n.orphans, err = proc.OpenChildren(n.cmd.Process.Pid, n.cmd.Process.Pid); err != nil {
		n.orphans = -1
	}
	go n.receive()
	return n, files, nil
}

// ahead returns a process 1 that waits for its plan. It is nil if there is none.
var ahead atomic.Pointer[func() *insideProcess]

// Prepare starts process 1 of a sandbox with namespaces, for the next start with [Options].Ahead. The process ends with
// this one at the latest. Prepare does not wait; a failure shows when the sandbox is started.
func (Options) Prepare() {
	begin := sync.OnceValue(func() *insideProcess {
		n, _ := newInit(Namespaces, namespaceAttributes(owners{})) // nil: the start tries again
		return n
	})
	ahead.Store(&begin)
	go begin()
}

// newInit starts process 1, which gets a socket, a pipe for the plan, an empty environment and nothing else.
func newInit(b Backend, attr *syscall.SysProcAttr) (n *insideProcess, err error) {
	n = &insideProcess{backend: b, waiting: make(map[uint64]chan reply), commands: make(map[uint64]*nsProcess),
		dead: make(chan struct{})}
	complainFD, err := contract.MemoryFile("errors", nil)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	n.complain = os.NewFile(uintptr(complainFD), "errors")
	planFile, plan, err := os.Pipe()
	if err != nil {
		n.complain.Close()
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	defer planFile.Close()
	n.plan = plan
	ours, theirs, err := socketPair()
	if err != nil {
		n.complain.Close()
		plan.Close()
		return nil, err
	}
	defer theirs.Close()
	n.conn = ours
	n.cmd = exec.Command("/proc/self/exe") // also where the file was replaced or cannot be reached by name
	n.cmd.Args = []string{"toolhost", contract.Arg, string(n.backend)}
	// Garbage is not collected at the start: what packages make then is none.
	n.cmd.Env = []string{"GOMAXPROCS=2", "GOTRACEBACK=none", "GOGC=off"}
	n.cmd.Dir = "/"
	n.cmd.Stderr = n.complain
	n.cmd.ExtraFiles = []*os.File{theirs, planFile}
	var limit unix.Rlimit
	// Package syscall needs numbers above LastFD.
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil && limit.Cur > 2*contract.LastFD {
		n.cmd.ExtraFiles = append(n.cmd.ExtraFiles, make([]*os.File, contract.LastFD-contract.PlanFD)...)
		n.cmd.ExtraFiles[contract.LastFD-contract.ControlFD] = planFile
	}
	n.cmd.SysProcAttr = attr
	if err := n.cmd.Start(); err != nil {
		n.conn.Close()
		n.complain.Close()
		plan.Close()
		return nil, n.unavailable(err)
	}
	return n, nil
}

// tell gives process 1 its plan. It ignores errors: if the process has ended, [insideProcess.ready] says why.
func (n *insideProcess) tell(pl *contract.Plan) {
	_ = pl.Write(n.plan)
	n.plan.Close()
}

// namespaceAttributes asks for the namespaces, with our own user and group and the owners
// under their own numbers, and the capabilities process 1 needs in them.
func namespaceAttributes(o owners) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC |
			unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWNET,
		UidMappings: mappings(os.Geteuid(), o.users),
		GidMappings: mappings(os.Getegid(), o.groups),
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
	if !o.none() {
		for c := range uintptr(unix.CAP_LAST_CAP) {
			if contract.OwnerPowers>>c&1 != 0 {
				attr.AmbientCaps = append(attr.AmbientCaps, c)
			}
		}
	}
	return attr
}

func socketPair() (*contract.Conn, *os.File, error) {
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
	return contract.NewConn(conn.(*net.UnixConn)), theirs, nil
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
func (n *insideProcess) ready() ([]int, error) {
	event, files, err := n.conn.Event()
	if err != nil {
		return nil, err
	}
	if event.Kind != contract.Ready {
		contract.CloseAll(files)
		return nil, contract.ErrMalformed
	}
	n.noTUN, n.noOverlay, n.cached = event.NoTUN, event.NoOverlay, event.Cached
	if event.Err != nil {
		contract.CloseAll(files)
		return nil, event.Err
	}
	return files, nil
}
