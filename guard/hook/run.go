package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/guard/hostprogram"
	"github.com/toolhost/toolhost/guard/settings"
)

const (
	// exitBlock is the exit code that refuses.
	exitBlock = 2

	// drainTime is how long output is awaited from the processes that the shell leaves: `exec > >(tee log)` outlives
	// the shell for a moment.
	drainTime = 100 * time.Millisecond

	// answerTime is how much longer an answer is awaited, if there is none yet and a process still holds the output
	// open: the answer may be a refusal that a loaded machine delays.
	answerTime = 2 * time.Second

	// afterKill limits the wait for the end of the output after all processes were killed. It is reached only if one
	// could not be killed.
	afterKill = time.Second
)

// A Spec describes what to start.
type Spec struct {
	Argv  []string   // Argv[0] is the absolute path of the program
	Dir   string     // absolute working directory
	Env   []string   // the whole environment, "NAME=value"
	Files []*os.File // descriptors 0, 1 and 2; the caller closes them

	Contained bool // in a sandbox
	Async     bool // nothing waits for it
}

// A Process is a started process with its descendants.
type Process interface {
	// Wait waits for the process itself and returns its exit code, 128 + the
	// signal's number after a signal. It is called once. An error means that the
	// end is unknown.
	Wait() (exitCode int, err error)

	// Kill ends the remaining processes, and releases their resources. It is called once, whether the process has
	// ended or not. It returns notes on what the process was refused. The error says which processes could not be
	// ended.
	Kill() (refused []string, err error)
}

// runOne runs one hook within its time-out.
func (r *Runner) runOne(ctx context.Context, h chosen, event string, body []byte) (response, error) {
	if h.err != nil {
		return response{}, h.err
	}
	if ctx.Err() != nil { // a quick hook could end before it is ended
		return response{}, errors.New("it was not started because the call was cancelled")
	}
	timeout := h.Timeout
	if timeout <= 0 {
		timeout = settings.DefaultHookTimeout
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	a, err := r.ask(limited, h, event, body)
	switch {
	case err == nil:
		return a, nil
	case ctx.Err() != nil:
		return response{}, errors.New("it was ended because the call was cancelled")
	case limited.Err() != nil:
		return response{}, fmt.Errorf("it gave no answer within %v and was ended", timeout)
	}
	return response{}, err
}

func (r *Runner) ask(ctx context.Context, h chosen, event string, body []byte) (response, error) {
	switch h.Type {
	case "command":
		return r.command(ctx, h, event, body)
	case "http":
		return r.post(ctx, h.Hook, event, body)
	}
	return response{}, fmt.Errorf("its type is %q; command or http is expected", h.Type)
}

// command runs a command and reads its answer.
func (r *Runner) command(ctx context.Context, h chosen, event string, body []byte) (response, error) {
	if h.Command == "" {
		return response{}, errors.New("it names no command")
	}
	outside, err := r.outside(h.Hook)
	if err != nil {
		return response{}, hostError{err}
	}
	env, look := r.env, lookPath
	if outside {
		env, look = hostprogram.Clean(r.env), hostprogram.FindIn
	}
	argv, err := r.argv(h.Hook, env, look)
	if err != nil {
		return response{}, err
	}
	p, err := r.launch(ctx, Spec{Argv: argv, Dir: r.dir, Env: env, Contained: !outside, Async: h.Async})
	if err != nil {
		return response{}, startError(err)
	}
	code, err := p.finish(ctx, body)
	if p.left != nil {
		r.log.Warn("processes of a hook could not be ended", "event", event, "hook", h.label(), "error", p.left)
	}
	if err != nil {
		return response{}, err
	}
	said := clip(p.stderr.String(), maxText)
	switch {
	case code == exitBlock:
		if !outside && strings.Contains(said, "Read-only file system") { // dash then exits with 2
			said += maybeContained
		}
		return response{action: Deny, reason: said}, nil
	case code != 0:
		return response{}, failure(code, said, outside, p.refused)
	case p.stdout.over:
		return response{}, errTooLong
	}
	a, err := parse(event, p.stdout.text)
	if a.action == Allow && !outside {
		a.action, a.reason, a.void = none, "", true
	}
	return a, err
}

// A hostError is not a failure of the hook, but of what the host does to run it. It refuses the call: commands and
// clients may be able to cause it.
type hostError struct{ error }

// startError says that a command could not be started.
func startError(err error) error {
	wrapped := fmt.Errorf("it could not be started: %w", err)
	for _, own := range []error{fs.ErrNotExist, fs.ErrPermission, syscall.ENOEXEC} {
		if errors.Is(err, own) {
			return wrapped
		}
	}
	return hostError{wrapped}
}

// maybeContained ends the message about a contained hook that may lack rights.
const maybeContained = "\n(It ran in the sandbox. If that is why, a person can write \"contained\": false for it in " +
	"the user settings.)"

// failure describes how a command failed. If it ran in a sandbox, it says so, because that may be the cause.
func failure(code int, said string, outside bool, refused []string) error {
	if said = ": " + said; said == ": " {
		said = ", and nothing on standard error"
	}
	for _, note := range refused {
		said += "\n" + note
	}
	if !outside {
		said += maybeContained
	}
	return fmt.Errorf("exit code %d%s", code, said)
}

// errTooLong is the failure of a hook whose answer was cut.
var errTooLong = fmt.Errorf("its output is longer than %d MiB", maxOutput>>20)

// running is a started command with our ends of its pipes.
type running struct {
	proc            Process
	in, out, err    *os.File
	stdout, stderr  capture
	drain, response time.Duration
	refused         []string
	left            error // processes that could not be ended
}

// launch starts a command with pipes for input, output and errors.
func (r *Runner) launch(ctx context.Context, spec Spec) (_ *running, err error) {
	p := running{drain: r.drain, response: r.response}
	p.stdout.more = make(chan struct{}, 1)
	ours := []**os.File{&p.in, &p.out, &p.err}
	defer func() {
		closeAll(spec.Files)
		if err != nil {
			closeAll([]*os.File{p.in, p.out, p.err})
		}
	}()
	for i, our := range ours {
		from, to, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		if i == 0 {
			from, to = to, from
		}
		*our = from
		spec.Files = append(spec.Files, to)
	}
	p.stdout.limit, p.stderr.limit = maxOutput, maxOutput
	p.proc, err = r.start(ctx, spec)
	return &p, err
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close() // nil files only return an error
	}
}

// finish writes the input of a command, reads its output, and returns its exit code when the command and its
// descendants have ended.
func (p *running) finish(ctx context.Context, input []byte) (code int, err error) {
	type end struct {
		code int
		err  error
	}
	exit := make(chan end, 1)
	go func() {
		code, err := p.proc.Wait()
		if err != nil {
			err = hostError{err}
		}
		exit <- end{code, err}
	}()
	var readers, all sync.WaitGroup
	said := make(chan struct{})
	readers.Go(func() {
		defer close(said)
		io.Copy(&p.stdout, p.out) // only the end of the command counts
	})
	readers.Go(func() { io.Copy(&p.stderr, p.err) })
	all.Go(func() {
		p.in.Write(input) // a command need not read it
		p.in.Close()
	})
	eof := make(chan struct{})
	all.Go(func() {
		readers.Wait()
		close(eof)
	})
	select {
	case e := <-exit:
		code, err = e.code, e.err
		await(ctx, p.drain, eof)
		if code == 0 && err == nil {
			p.awaitAnswer(ctx, said)
		}
	case <-ctx.Done():
		err = ctx.Err()
	}
	p.refused, p.left = p.proc.Kill()
	p.in.Close() // ends the writer
	deadline := time.Now().Add(afterKill)
	p.out.SetReadDeadline(deadline)
	p.err.SetReadDeadline(deadline)
	all.Wait()
	closeAll([]*os.File{p.out, p.err})
	return code, err
}

// await waits for the end of the output.
func await(ctx context.Context, most time.Duration, eof <-chan struct{}) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-eof:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// awaitAnswer waits until the output is a whole answer or can no longer become one, or until said is closed.
func (p *running) awaitAnswer(ctx context.Context, said <-chan struct{}) {
	timer := time.NewTimer(p.response)
	defer timer.Stop()
	for !p.stdout.answers() {
		select {
		case <-p.stdout.more:
		case <-said:
			return
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// capture keeps the beginning of an output and drops the rest.
type capture struct {
	limit int
	more  chan struct{} // if not nil, gets a value when there is more output

	mu   sync.Mutex
	text []byte
	over bool
}

// Write implements [io.Writer].
func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	keep := min(len(p), c.limit-len(c.text))
	c.text = append(c.text, p[:keep]...)
	c.over = c.over || keep < len(p)
	select {
	case c.more <- struct{}{}:
	default:
	}
	return len(p), nil
}

// answers reports whether the output is a whole answer, or can no longer become one.
func (c *capture) answers() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over || json.Valid(c.text)
}

// String returns the kept output.
func (c *capture) String() string { return string(c.text) }
