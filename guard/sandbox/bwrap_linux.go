package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// bwrapPaths is where distributions install bubblewrap. It is not looked for in
// PATH, an entry of which a command may be able to write.
var bwrapPaths = [...]string{"/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap", "/run/current-system/sw/bin/bwrap"}

// bubblewrap starts every command with the bwrap program, which on some systems
// may create namespaces when other programs may not. All paths are resolved again
// for each command.
type bubblewrap struct {
	program    string
	executable string
	launcher   *launcher
	connector  *connector // or nil

	mu       sync.Mutex
	policy   Policy
	closed   bool
	unjudged bool // a command had no listener
	live     map[*bwrapProcess]bool
}

func startBubblewrap(ctx context.Context, p Policy, o Options, k *connector) (*bubblewrap, error) {
	i := slices.IndexFunc(bwrapPaths[:], func(path string) bool { _, err := os.Stat(path); return err == nil })
	if i < 0 {
		return nil, &unavailableError{backendBubblewrap, "the program bwrap is not installed", "Install it: sudo apt install bubblewrap, or sudo dnf install bubblewrap"}
	}
	executable := o.Executable
	if executable == "" {
		var err error
		if executable, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("sandbox: %w", err)
		}
	}
	p.Denied = slices.Clone(p.Denied)
	b := &bubblewrap{
		program: bwrapPaths[i], executable: executable, policy: p,
		launcher: newLauncher(), connector: k, live: make(map[*bwrapProcess]bool),
	}
	if err := b.check(ctx); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

// check runs this program in a first sandbox and verifies the view.
func (b *bubblewrap) check(ctx context.Context) error {
	pl, err := resolve(b.policy)
	if err != nil {
		return err
	}
	argv := []string{b.executable, initArg, roleCheck}
	for _, m := range mountsOf(pl) {
		if m.option == "" && !m.leads {
			argv = append(argv, m.path)
		}
	}
	out, code, err := b.output(ctx, argv)
	switch {
	case err != nil:
		return &unavailableError{backendBubblewrap, fmt.Sprintf("a first trial failed: %v", err), namespaceRemedy(err)}
	case code != 0:
		return &unavailableError{backendBubblewrap, fmt.Sprintf("a first trial failed with code %d: %s", code, out), namespaceRemedy(errors.New(out))}
	}
	return nil
}

// output runs argv and returns what it wrote.
func (b *bubblewrap) output(ctx context.Context, argv []string) (string, int, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return "", 0, err
	}
	defer r.Close()
	p, err := b.spawn(Spec{Argv: argv, Env: []string{"GOTRACEBACK=none"}, Files: []*os.File{nil, w, w}})
	w.Close()
	if err != nil {
		return "", 0, err
	}
	stop := context.AfterFunc(ctx, func() { p.Kill() })
	defer stop()
	var text bytes.Buffer
	text.ReadFrom(r)
	st, err := p.Wait()
	p.Kill()
	return strings.TrimSpace(text.String()), st.ExitCode, err
}

// try implements engine.
func (b *bubblewrap) try(c canary) (attempt, error) {
	argv := []string{b.executable, initArg, roleTry, c.read, c.write, strconv.Itoa(c.port)}
	out, code, err := b.output(context.Background(), argv)
	if err != nil {
		return attempt{}, err
	}
	n, convErr := strconv.ParseUint(out, 10, 8)
	if code != 0 || convErr != nil {
		return attempt{}, fmt.Errorf("the trial failed: %s", out)
	}
	return attemptOf(n), nil
}

// deny implements engine: the next command is started with more masks. What
// runs already keeps the view it has.
func (b *bubblewrap) deny(paths []string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return ErrClosed
	}
	for _, p := range paths {
		if !slices.Contains(b.policy.Denied, p) {
			b.policy.Denied = append(b.policy.Denied, p)
		}
	}
	return nil
}

// hold implements engine: the next command is started with what is there then.
func (*bubblewrap) hold([]string) error { return nil }

// show implements engine: the next command is started with the view of that moment.
func (b *bubblewrap) show(d Private, _ []string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := slices.Clone(b.policy.Private)
	for i := range list {
		if list[i].Name == d.Name {
			list[i] = d
		}
	}
	b.policy.Private = list
	return nil
}

func (b *bubblewrap) close() error {
	b.mu.Lock()
	b.closed = true
	live := b.live
	b.live = nil
	b.mu.Unlock()
	var errs []error
	for w := range live {
		if _, err := w.Kill(); err != nil {
			errs = append(errs, err)
		}
	}
	b.launcher.close()
	return errors.Join(errs...)
}

func (b *bubblewrap) spawn(s Spec) (Process, error) {
	program, err := lookPath(s.Argv[0], s.Env)
	if err != nil {
		return nil, fmt.Errorf("sandbox: starting %s: %w", s.Argv[0], err)
	}
	w, err := b.spawnOnce(s, program)
	for range setUpTries - 1 {
		if !errors.As(err, new(*setUpError)) {
			break
		}
		w, err = b.spawnOnce(s, program)
	}
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		go w.Kill()
		return nil, ErrClosed
	}
	b.live[w] = true
	return w, nil
}

// setUpTries is how often bwrap is run for a command. It is given the names of what to mount,
// and a file may be removed before it mounts it.
const setUpTries = 3

// spawnOnce runs bwrap once.
func (b *bubblewrap) spawnOnce(s Spec, program string) (*bwrapProcess, error) {
	b.mu.Lock()
	policy, closed := b.policy, b.closed
	policy.Denied = slices.Clone(policy.Denied)
	b.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	pl, err := resolve(policy)
	if err != nil {
		return nil, err
	}
	pl.judged, pl.execs = b.connector != nil, s.Execs != nil
	w := &bwrapProcess{engine: b, done: make(chan struct{})}
	if err := w.start(b, pl, s, program); err != nil {
		return nil, fmt.Errorf("sandbox: starting %s: %w", s.Argv[0], err)
	}
	return w, nil
}

// serve makes the connections of a command, and judges its programs.
func (b *bubblewrap) serve(files []int, gate *ExecGate) error {
	if len(files) != 2 {
		b.mu.Lock()
		b.unjudged = true
		b.mu.Unlock()
	}
	return serveCalls(files, b.connector, gate.only(true))
}

// bwrapProcess is a command under bwrap.
type bwrapProcess struct {
	engine *bubblewrap
	cmd    *exec.Cmd
	report *os.File // what bwrap says about the namespace
	inner  int      // bwrap's process 1 in the namespace, as we see it
	pidfd  int      // of inner
	done   chan struct{}
	status Status
	once   sync.Once
}

// start runs bwrap, and returns when the command runs. It gets the command's
// descriptors first, and after them its own.
func (w *bwrapProcess) start(b *bubblewrap, pl *plan, s Spec, program string) error {
	in := &inputs{}
	defer in.close()
	files, err := in.fill(s.Files)
	if err != nil {
		return err
	}
	own := ownFiles(len(files))
	args, err := bwrapArgs(pl, in, own.inputs())
	if err != nil {
		return err
	}
	enter, err := enterArgs(pl, in, own)
	if err != nil {
		return err
	}
	start, err := newBeginning()
	if err != nil {
		return err
	}
	defer start.close()
	args, err = hideArgs(append(args, "--json-status-fd", strconv.Itoa(own.status()), "--chdir", orRoot(s.Dir)), in, own.inputs())
	if err != nil {
		return err
	}
	w.report = start.status // bwrap writes to it at the end too, and must not find it closed
	w.cmd = exec.Command(b.program)
	w.cmd.Args = slices.Concat([]string{"bwrap"}, args, []string{"--"}, enter, []string{program}, s.Argv)
	w.cmd.Env, w.cmd.Dir = s.Env, "/"
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	w.cmd.Stdin, w.cmd.Stdout, w.cmd.Stderr = files[0], files[1], start.words
	w.cmd.ExtraFiles = slices.Concat(files[3:], []*os.File{start.statusIn, files[2], start.enteredIn}, in.files)
	b.launcher.do(func() { err = w.cmd.Start() })
	start.started()
	if err != nil {
		w.report.Close()
		return err
	}
	w.identify()
	go w.wait()
	if err := start.wait(func(files []int) error { return b.serve(files, s.Execs) }); err != nil {
		w.Kill()
		return err
	}
	return nil
}

// identify reads the number of process 1 of the namespace. bwrap prints it before it runs
// the command, or ends without output if it cannot.
func (w *bwrapProcess) identify() {
	var status struct {
		ChildPID int `json:"child-pid"`
	}
	w.pidfd = -1
	if json.NewDecoder(w.report).Decode(&status) == nil && status.ChildPID > 0 {
		w.inner = status.ChildPID
		if fd, err := unix.PidfdOpen(w.inner, 0); err == nil {
			w.pidfd = fd
		}
	}
}

func orRoot(dir string) string {
	if dir == "" {
		return "/"
	}
	return dir
}

func (w *bwrapProcess) wait() {
	defer close(w.done)
	w.cmd.Wait()
	w.report.Close()
	ws, ok := w.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok {
		w.status = Status{ExitCode: -1}
		return
	}
	w.status = statusOf(ws)
	// bwrap passes a signal on as the shell does.
	if sig := syscall.Signal(w.status.ExitCode - 128); ws.Exited() && sig > 0 && unix.SignalName(sig) != "" {
		w.status.Signal = unix.SignalName(sig)
	}
}

// Done implements Process.
func (w *bwrapProcess) Done() <-chan struct{} { return w.done }

// Wait implements Process.
func (w *bwrapProcess) Wait() (Status, error) {
	<-w.done
	return w.status, nil
}

// Signal implements Process. bwrap's process 1 leads the group; as process
// 1 it ignores all signals but SIGKILL.
func (w *bwrapProcess) Signal(sig os.Signal) error {
	number, ok := sig.(syscall.Signal)
	if !ok {
		return fmt.Errorf("sandbox: %v is not a signal of this system", sig)
	}
	select {
	case <-w.done:
		return nil
	default:
	}
	if w.inner > 1 {
		unix.Kill(-w.inner, number)
	}
	return nil
}

// Kill implements Process. The namespace's process 1 is gone only when all
// others in it are.
func (w *bwrapProcess) Kill() (ended int, err error) {
	w.once.Do(func() {
		select {
		case <-w.done:
		default:
			ended = 1
		}
		w.cmd.Process.Kill()
		if w.pidfd >= 0 {
			unix.PidfdSendSignal(w.pidfd, unix.SIGKILL, nil, 0)
			err = waitPidfd(w.pidfd)
			unix.Close(w.pidfd)
		}
		<-w.done
		w.engine.mu.Lock()
		delete(w.engine.live, w)
		w.engine.mu.Unlock()
	})
	return ended, err
}

// TryFinish implements Process.
func (w *bwrapProcess) TryFinish() (files int, ok bool) { return 0, false }

// waitPidfd waits until a killed process has ended.
func waitPidfd(fd int) error {
	const limit = 10_000 // ms; a process in the kernel's hands may take long
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, limit)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("sandbox: waiting for processes to end: %w", err)
		case n == 0:
			return errors.New("sandbox: processes did not end within 10 s of being killed")
		default:
			return nil
		}
	}
}
