package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/internal/proxy"
	"github.com/toolhost/toolhost/guard/sandbox/internal/contract"
)

// sandboxExec is part of macOS.
const sandboxExec = "/usr/bin/sandbox-exec"

// backendSeatbelt is the sandbox of macOS.
const backendSeatbelt Backend = "seatbelt"

// optionalBackends are tried if the settings want them: the backend was never tried on a real machine.
var platformBackends, optionalBackends = []Backend(nil), []Backend{backendSeatbelt}

func platformReport() Report {
	return Report{
		Why: []string{"On macOS commands are not contained unless the settings ask for it; its sandbox-exec was not " +
			"tried on a real machine."},
		Remedy: "Set sandbox.seatbelt to true in your user settings to contain them with it",
	}
}

// Prepare does nothing on this system; see the Linux version.
func (Options) Prepare() {}

// seatbelt starts every command by sandbox-exec with a profile made of the
// policy. Rules about paths are applied at every access, so that files that
// appear later need nothing.
type seatbelt struct {
	proxyPort int

	mu     sync.Mutex
	policy Policy
	closed bool
	live   map[*group]bool
}

func start(ctx context.Context, b Backend, p Policy, o Options) (*Sandbox, error) {
	if b != backendSeatbelt {
		return nil, &unavailableError{backend: b, cause: "is not a backend of this system"}
	}
	if _, err := os.Stat(sandboxExec); err != nil {
		return nil, &unavailableError{backend: b, cause: err.Error()}
	}
	resolved, err := resolveAllPaths(p)
	if err != nil {
		return nil, err
	}
	e := &seatbelt{policy: resolved, live: make(map[*group]bool)}
	s := &Sandbox{engine: e, report: Report{
		Backend:  backendSeatbelt,
		Enforces: enforcement{Writes: true, Denies: true, Network: true},
		Why: []string{"seatbelt: a command can leave processes behind; macOS has no way to find all of them.",
			"seatbelt: another hard link to a denied file can be read."},
		Remedy: "Run the server on Linux to have everything held",
	}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("sandbox: proxy: %w", err)
	}
	e.proxyPort = l.Addr().(*net.TCPAddr).Port
	rules := p.Network.rules()
	rules.Caller = s.caller
	s.proxy = proxy.Start(l, rules, o.Dial, o.Resolve)
	s.env = s.proxy.Env()
	if err := e.check(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// check sees whether the profile is accepted.
func (e *seatbelt) check(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, sandboxExec, "-p", seatbeltProfile(e.policy, e.proxyPort),
		"/usr/bin/true").CombinedOutput()
	if ctx.Err() != nil {
		return fmt.Errorf("sandbox: start: %w", context.Cause(ctx))
	}
	if err != nil {
		return &unavailableError{backendSeatbelt, fmt.Sprintf("a first trial failed: %v: %s", err,
			strings.TrimSpace(string(out))), ""}
	}
	return nil
}

// resolveAllPaths follows symbolic links in every path of a policy, as far as
// the paths exist.
func resolveAllPaths(p Policy) (Policy, error) {
	for _, w := range p.Writable {
		if _, err := os.Stat(w); err != nil {
			return p, fmt.Errorf("sandbox: writable path %s: %w; create it before the sandbox starts", w, err)
		}
	}
	for _, list := range []*[]string{&p.Writable, &p.ReadOnly, &p.Denied, &p.Masked, &p.Shown, &p.Programs,
		&p.Sockets} {
		resolved := make([]string, 0, len(*list))
		for _, path := range *list {
			clean := filepath.Clean(path)
			resolved = append(resolved, resolveExisting(clean))
			if list == &p.Denied || list == &p.Masked || list == &p.ReadOnly {
				resolved = append(resolved, clean) // the link itself is guarded as well
			}
		}
		slices.Sort(resolved)
		*list = slices.Compact(resolved)
	}
	return p, nil
}

// resolveExisting follows symbolic links in the part of path that exists.
func resolveExisting(path string) string {
	if r, err := filepath.EvalSymlinks(path); err == nil {
		return r
	}
	dir := filepath.Dir(path)
	if dir == path {
		return path
	}
	return filepath.Join(resolveExisting(dir), filepath.Base(path))
}

func (e *seatbelt) spawn(s Spec) (Process, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, ErrClosed
	}
	g := &group{engine: e, done: make(chan struct{})}
	g.cmd = exec.Command(sandboxExec, append([]string{"-p", seatbeltProfile(e.policy, e.proxyPort)}, s.Argv...)...)
	g.cmd.Env, g.cmd.Dir = s.Env, s.Dir
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	for i, f := range s.Files {
		switch {
		case i > 2:
			g.cmd.ExtraFiles = append(g.cmd.ExtraFiles, f)
		case f == nil: // /dev/null
		case i == 0:
			g.cmd.Stdin = f
		case i == 1:
			g.cmd.Stdout = f
		default:
			g.cmd.Stderr = f
		}
	}
	if err := g.cmd.Start(); err != nil {
		return nil, fmt.Errorf("sandbox: starting %s: %w", s.Argv[0], err)
	}
	go g.wait()
	e.live[g] = true
	return g, nil
}

func (e *seatbelt) deny(paths []string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrClosed
	}
	denied := slices.Clone(e.policy.Denied)
	for _, p := range paths {
		denied = append(denied, filepath.Clean(p), resolveExisting(filepath.Clean(p)))
	}
	slices.Sort(denied)
	e.policy.Denied = slices.Compact(denied)
	return nil
}

// hold implements engine: its rules know names.
func (*seatbelt) hold([]string) error { return nil }

// show implements engine: nothing is mounted.
func (*seatbelt) show(Private, []string) error { return nil }

// refresh implements engine: there are no overlays.
func (*seatbelt) refresh() error { return nil }

// try implements engine.
func (e *seatbelt) try(c contract.Canary) (a contract.Attempt, err error) {
	run := func(script string) bool {
		cmd := exec.Command(sandboxExec, "-p", seatbeltProfile(e.policy, e.proxyPort), "/bin/bash", "-c", script, "try",
			c.Read, c.Write, strconv.Itoa(c.Port))
		return cmd.Run() == nil
	}
	if !run("exit 0") {
		return a, errors.New("the trial failed: no command runs")
	}
	a.Read, a.Wrote = run(`: < "$1"`), run(`: >> "$2"`)
	a.Connected = run(`: < "/dev/tcp/127.0.0.1/$3"`)
	return a, nil
}

func (e *seatbelt) close() error {
	e.mu.Lock()
	e.closed = true
	live := e.live
	e.live = nil
	e.mu.Unlock()
	for g := range live {
		g.Kill()
	}
	return nil
}

// group is a command and its process group.
type group struct {
	engine *seatbelt
	cmd    *exec.Cmd
	done   chan struct{}
	status Status
}

func (g *group) wait() {
	defer close(g.done)
	g.cmd.Wait()
	ws, ok := g.cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case !ok:
		g.status = Status{ExitCode: -1}
	case ws.Signaled():
		g.status = Status{ExitCode: 128 + int(ws.Signal()), Signal: unix.SignalName(ws.Signal())}
	default:
		g.status = Status{ExitCode: ws.ExitStatus()}
	}
}

// Done implements Process.
func (g *group) Done() <-chan struct{} { return g.done }

// Wait implements Process.
func (g *group) Wait() (Status, error) {
	<-g.done
	return g.status, nil
}

// Signal implements Process.
func (g *group) Signal(sig os.Signal) error {
	number, ok := sig.(syscall.Signal)
	if !ok {
		return fmt.Errorf("sandbox: %v is not a signal of this system", sig)
	}
	unix.Kill(-g.cmd.Process.Pid, number)
	return nil
}

// TryFinish implements Process.
func (g *group) TryFinish() (files int, ok bool) { return 0, false }

// Kill implements Process, for the process group only.
func (g *group) Kill() (ended int, err error) {
	if unix.Kill(-g.cmd.Process.Pid, unix.SIGKILL) == nil {
		ended = 1
	}
	<-g.done
	g.engine.mu.Lock()
	defer g.engine.mu.Unlock()
	delete(g.engine.live, g)
	return ended, nil
}

// recalled and remember do nothing on this system; see the Linux version.
func recalled() (r Report, known bool) { return r, false }

func remember(Report) {}
