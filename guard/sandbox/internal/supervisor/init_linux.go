package supervisor

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/contract"
	"github.com/toolhost/toolhost/guard/sandbox/internal/kernel"
	"github.com/toolhost/toolhost/guard/sandbox/internal/landlock"
	"github.com/toolhost/toolhost/guard/sandbox/internal/namespaces"
	"github.com/toolhost/toolhost/guard/sandbox/internal/proc"
	"github.com/toolhost/toolhost/guard/sandbox/ownprocess"
)

// init runs the part of a sandbox that this process was started as, if any, and then does not return. No main
// function has to call it, and packages that are initialized later cost its start nothing. It keeps the first thread:
// see [ignoreTermination].
func init() {
	if len(os.Args) > 2 && os.Args[1] == contract.Arg {
		runtime.LockOSThread()
		runRole(os.Args[2], os.Args[3:])
	}
}

// runRole runs a part of a sandbox and ends the process.
func runRole(role string, args []string) {
	var err error
	switch role {
	case contract.RoleNamespaces:
		err = guard((*initProcess).setUp)
	case contract.RoleLandlock:
		err = guard((*initProcess).setUpLandlock)
	case contract.RoleJob:
		err = runJob(args)
	default:
		err = fmt.Errorf("unknown part %q", role)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "toolhost sandbox: %v\n", err)
		unix.Exit(exitInit)
	}
	unix.Exit(0)
}

// exitInit is the exit code of a process 1 that failed.
const exitInit = 125

// initProcess is process 1 of a namespace sandbox, or a supervisor under Landlock.
type initProcess struct {
	conn  *contract.Conn
	view  *namespaces.View
	spawn *spawner
	jobs  *jobs
	noTUN error // why commands have no TUN device

	cached []string // see [contract.Event]
}

// gcAfter is when the garbage collector is switched on in an init process: a collection during the setup of the
// sandbox would take 5 to 20 ms.
const gcAfter = time.Second

// guard runs an init process, prepared by setUp. It returns only with an error; the
// end of the host ends the process.
func guard(setUp func(*initProcess) ([]int, error)) error {
	// Mounts need a thread with capabilities. All threads have them except the spawner. The lock makes the runtime
	// keep a clean thread from which it starts others.
	runtime.LockOSThread()
	ownprocess.TrimWhenIdle()
	time.AfterFunc(gcAfter, func() { debug.SetGCPercent(100) })
	unix.Close(contract.LastFD)
	if err := unix.CloseRange(contract.ControlFD, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("closing inherited descriptors: %w", err)
	}
	setChildLimits()
	conn, err := controlConn()
	if err != nil {
		return err
	}
	g := &initProcess{conn: conn, jobs: newJobs()}
	files, err := setUp(g)
	ready := contract.Event{Kind: contract.Ready, Err: err, NoTUN: g.noTUN, Cached: g.cached}
	if g.view != nil {
		ready.NoOverlay = g.view.NoOverlay
	}
	if sendErr := conn.Send(ready, files...); sendErr != nil || err != nil {
		return errors.Join(err, sendErr)
	}
	contract.CloseAll(files)
	go g.jobs.reap(func(j *job, status syscall.WaitStatus, gone bool) {
		conn.Send(contract.Event{Kind: contract.Exited, ID: j.id, Status: status, Gone: gone, Mark: j.mark})
	})
	return g.serve()
}

// ignoreTermination keeps commands from ending process 1 of a namespace with a signal, and from occupying it with
// signals. The kernel drops every signal to a process 1 from inside for which it has no handler, so all handlers of
// Go are removed, bypassing its runtime. An empty handler would not suffice: a few commands can send signals faster
// than it returns, and nothing else would ever run here again, not even the termination that follows that of the
// host.
//
// The kernel makes one exception: a signal that the main thread blocks is not dropped
// but queued, and if another thread does not block it, process 1 is killed. Go blocks
// signals in a handler, of which there are none any more, and in a thread that starts
// a thread or a process, which the main one does not: it is locked since [init], and
// others do that in its place.
func ignoreTermination() {
	for sig := uintptr(1); sig <= lastSignal; sig++ {
		sigaction(sig, &kernelAction{handler: sigDefault})
	}
}

// ignoreSignals keeps a signal to the process group of a supervisor from ending it. Commands
// would inherit ignored signals; they do not inherit a channel that is never read.
//
// The end of a child must not be reported by a signal, which would wake another
// thread: reap waits for it already.
func ignoreSignals() {
	signal.Notify(make(chan os.Signal, 1))
	sigaction(uintptr(unix.SIGCHLD), &kernelAction{handler: sigDefault})
}

// kernelAction is struct kernel_sigaction.
type kernelAction struct{ handler, flags, restorer, mask uint64 }

const (
	sigDefault = 0
	lastSignal = 64
)

func sigaction(sig uintptr, set *kernelAction) {
	unix.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(set)), 0,
		unsafe.Sizeof(kernelAction{}.mask), 0, 0)
}

func controlConn() (*contract.Conn, error) {
	f := os.NewFile(contract.ControlFD, "control")
	c, err := net.FileConn(f)
	f.Close()
	if err != nil {
		return nil, fmt.Errorf("this is started by a sandbox's host only: %w", err)
	}
	conn, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.New("this is started by a sandbox's host only")
	}
	return contract.NewConn(conn), nil
}

// setUp builds everything commands will see, and returns descriptors for the host: of the
// proxy's listener, of the TUN device if there is one, and those of appendListener.
func (g *initProcess) setUp() ([]int, error) {
	ignoreTermination()
	pl, err := readPlan()
	if err != nil {
		return nil, err
	}
	// Not dumpable: commands have the same user and could trace us otherwise.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("refusing to be traced: %w", err)
	}
	var tun int
	tun, g.noTUN = namespaces.OpenTUN() // before /dev is replaced
	pl.Named = tun >= 0
	if g.view, err = namespaces.Build(pl); err != nil {
		return nil, err
	}
	g.cached = pl.Cached()
	rules, err := landlock.Writes(pl)
	if err != nil {
		return nil, err
	}
	judged := -1
	g.spawn, err = newSpawner(true, func() (err error) {
		judged, err = restrictCommands(rules, pl)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := namespaces.LoopbackUp(); err != nil {
		return nil, err
	}
	proxy, err := namespaces.ListenLoopback(0)
	if err != nil {
		return nil, err
	}
	files := []int{proxy}
	if tun >= 0 {
		files = append(files, tun)
	}
	return appendListener(files, judged, pl)
}

// appendListener appends what the host needs to answer the calls of a filter: its listener, which is -1 if there is
// none, and the table of Unix sockets if it makes connections. Because this process holds a copy of the listener,
// programs that must be judged wait when the host has been killed, and do not fail, until we end them.
func appendListener(files []int, listener int, pl *contract.Plan) ([]int, error) {
	if listener < 0 {
		return files, nil
	}
	files = append(files, listener)
	if pl.Execs {
		if _, err := unix.FcntlInt(uintptr(listener), unix.F_DUPFD_CLOEXEC, 0); err != nil {
			return nil, fmt.Errorf("keeping the listener: %w", err)
		}
	}
	if pl.Judged {
		table, err := kernel.DiagSocket()
		if err != nil {
			return nil, err
		}
		files = append(files, table)
	}
	return files, nil
}

func readPlan() (*contract.Plan, error) {
	f := os.NewFile(contract.PlanFD, "plan")
	defer f.Close()
	return contract.ReadPlan(f)
}

// serve answers the host until it is gone. Requests are taken in order: a deny
// is in force before a command that is asked for after it starts.
func (g *initProcess) serve() error {
	for {
		request, files, err := g.conn.Request()
		if errors.Is(err, contract.ErrMalformed) {
			return err
		}
		if err != nil {
			if g.view == nil { // no namespace that would end with us
				sweepDescendants()
			} else {
				unix.Kill(-1, unix.SIGKILL) // before the copy of the listener is closed, by which programs would fail
			}
			unix.Exit(0) // the host has ended; with us, at once, everything here does
		}
		if err := g.handle(request, files); err != nil {
			return err
		}
		contract.CloseAll(files)
	}
}

// handle answers one request. An error is a broken host, and the end.
func (g *initProcess) handle(r contract.Request, files []int) error {
	switch r.Kind {
	case contract.Spawn:
		mark, tether, err := g.start(r, files)
		defer contract.CloseAll(tether)
		spawned := contract.Event{Kind: contract.Spawned, ID: r.ID, Err: err, Mark: mark}
		err = g.conn.Send(spawned, tether...)
		if errors.Is(err, unix.ETOOMANYREFS) { // the host can do without
			err = g.conn.Send(spawned)
		}
		return err
	case contract.Signal:
		g.jobs.signal(r.ID, r.Signal)
		return nil
	case contract.Kill:
		go func() { // a sweep may take a while; other commands need not wait
			ended, err := g.jobs.kill(r.Command)
			g.conn.Send(contract.Event{Kind: contract.Done, ID: r.ID, Err: err, Ended: ended})
		}()
		return nil
	case contract.Deny, contract.Hold, contract.Show, contract.Refresh:
		if g.view == nil {
			return contract.ErrMalformed
		}
		return g.conn.Send(contract.Event{Kind: contract.Done, ID: r.ID, Err: g.view.Change(r)})
	case contract.Try:
		var a contract.Attempt
		g.spawn.Do(func() { a = tryAll(r.Canary) })
		return g.conn.Send(contract.Event{Kind: contract.Done, ID: r.ID, Attempt: a})
	case contract.Dial:
		go g.dial(r.ID, r.Port) // a full backlog makes it wait
		return nil
	case contract.Listen:
		return g.reply(r.ID, func() (int, error) { return namespaces.ListenLoopback(r.Port) })
	}
	return fmt.Errorf("request %q: %w", r.Kind, contract.ErrMalformed)
}

// start starts a command, and returns the number of its UTS namespace, or 0, and the
// descriptors by which the host can conclude it.
func (g *initProcess) start(r contract.Request, files []int) (mark uint64, tether []int, err error) {
	p, err := g.jobs.add(r.ID, func() (forked, error) { return g.spawn.start(r, files) })
	if err != nil || p.pidfd < 0 {
		return p.mark, nil, err
	}
	children, err := proc.OpenChildren(p.pid, p.pid)
	dir, dirErr := unix.Open("/proc/"+strconv.Itoa(p.pid)+"/fd", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	tether = []int{p.pidfd, children, dir}
	if err != nil || dirErr != nil || unix.PidfdSendSignal(p.pidfd, 0, nil, 0) != nil {
		// The kernel does not support it, or the process has ended already, and another may have
		// its number.
		contract.CloseAll(tether)
		return p.mark, nil, nil
	}
	return p.mark, tether, nil
}

// dial answers a request to Dial.
func (g *initProcess) dial(id uint64, port int) error {
	if port == 0 {
		return g.reply(id, kernel.DiagSocket)
	}
	return g.reply(id, func() (int, error) { return namespaces.DialLoopback(port) })
}

// reply answers a request with a descriptor.
func (g *initProcess) reply(id uint64, open func() (int, error)) error {
	fd, err := open()
	if err != nil {
		return g.conn.Send(contract.Event{Kind: contract.Done, ID: id, Err: err})
	}
	defer unix.Close(fd)
	return g.conn.Send(contract.Event{Kind: contract.Done, ID: id}, fd)
}
