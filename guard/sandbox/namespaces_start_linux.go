package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// startNamespaces starts process 1 of new namespaces, whose connections k makes, unless
// it is nil. listener is the proxy's socket inside, nil with an unrestricted network.
func startNamespaces(ctx context.Context, p Policy, o Options, k *connector) (n *namespaces, listener net.Listener, err error) {
	pl, err := resolve(p)
	if err != nil {
		return nil, nil, err
	}
	pl.judged, pl.execs = k != nil, p.Execs
	n, files, err := startInit(ctx, Namespaces, pl, o.Executable, namespaceAttributes(pl.network))
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

// startInit starts ourselves as the init process of commands and waits until it
// is ready; files is what it sent with that message.
func startInit(ctx context.Context, b Backend, pl *plan, executable string, attr *syscall.SysProcAttr) (n *namespaces, files []int, err error) {
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
