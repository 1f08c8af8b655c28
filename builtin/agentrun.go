package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/agent"
	"github.com/toolhost/toolhost/builtin/internal/shell"
	"github.com/toolhost/toolhost/builtin/internal/task"
	"github.com/toolhost/toolhost/builtin/internal/text"
	"github.com/toolhost/toolhost/guard/sandbox"
)

// Bounds of what an agent prints.
const (
	// maxAgentOutput is the output after which an agent is ended, and maxAgentLine the part of a line that is read,
	// in bytes.
	maxAgentOutput, maxAgentLine = 256 << 20, 4 << 20
	// maxOwnWords is how many characters of the messages of a failed runner are shown.
	maxOwnWords = 2000
	// maxAnswer is how many bytes are kept of an answer that comes in pieces.
	maxAnswer = 256 << 10
	// answerGrace is how long a runner may continue after its answer is complete.
	answerGrace = 5 * time.Second
)

var sessionName = regexp.MustCompile(`^[[:alnum:]][\w.-]{0,127}$`)

// maxTaskName is how many characters of a description are used as the name of the task.
const maxTaskName = 60

// An agentRun is one run of an agent.
type agentRun struct {
	*knownAgent
	env    *Env
	in     agentInput
	runner agentRunner
	parse  agent.Parser
	id     string // "" until it starts, unless an agent is continued
	prompt string
	model  string

	task  *task.Task
	life  context.Context // done when the agent must end; its cause says why
	stop  context.CancelCauseFunc
	place *agentPlace
	cell  *Cell
	end   func() // ends what the agent has started with the tools of this host
	pipes []*os.File
	begun time.Time
	front context.Context // done when the call has been answered
	leave context.CancelFunc

	out        *shell.Collector
	transcript io.WriteCloser
	path       string // of the transcript
	status     sandbox.Status
	notes      []string // lines about how it ended
	cause      error    // why it was ended; nil if it ended by itself
	complete   chan struct{}
	reading    sync.WaitGroup

	mu       sync.Mutex
	answer   string
	failed   bool
	finished bool   // the answer is complete
	words    []byte // the beginning of its other output
	bytes    int64
	turns    int
	tokens   int
	files    []agentFile
	calls    []string // not yet sent to the client as progress
}

// run starts the agent and waits for it while the call can wait.
func (r *agentRun) run(ctx context.Context) (Result, error) {
	r.front, r.leave = context.WithCancel(ctx)
	defer r.leave()
	if err := r.start(ctx); err != nil {
		return Result{}, err
	}
	var over <-chan time.Time
	background := r.in.Background || r.def.Background && r.in.Resume == ""
	switch {
	case background && handsOver(ctx, r.id):
	case background:
		return r.continuesAsTask("The agent runs as the background task"), nil
	default:
		patience := time.NewTimer(r.env.Shell.Window)
		defer patience.Stop()
		over = patience.C
	}
	select {
	case <-r.task.Done():
	case <-over:
		if !handsOver(ctx, r.id) {
			return r.continuesAsTask(fmt.Sprintf("The agent still runs after %s; it goes on as the background task",
				r.env.Shell.Window)), nil
		}
		select {
		case <-r.task.Done():
		case <-ctx.Done():
		}
	case <-ctx.Done():
	}
	_, _ = r.task.Stop(r.env.Scope) // this result reports its end
	return r.result(), nil
}

func (r *agentRun) continuesAsTask(head string) Result {
	r.leave()
	text := fmt.Sprintf("%s %s. Its tool calls, and its answer: TaskOutput {\"task_id\":%q}; end it with TaskStop.\n",
		head, r.id, r.id)
	out := r.structured()
	out.Status, out.TaskID = "running", r.id
	return Result{Text: text, Structured: out, Summary: r.id}
}

// start starts the agent as a task.
func (r *agentRun) start(ctx context.Context) (err error) {
	name := firstRunes(strings.Join(strings.Fields(r.in.Description), " "), maxTaskName)
	spec := r.env.taskSpec(agentKind, fmt.Sprintf("Agent(%s: %s)", r.def.Name, name))
	spec.ID, spec.Data = r.id, r.knownAgent
	if r.task, err = r.env.Runtime.tasks.Reserve(spec); err != nil {
		return err
	}
	r.id, r.begun, r.complete = r.task.ID, time.Now(), make(chan struct{})
	r.life, r.stop = context.WithCancelCause(r.task.Context())
	defer func() {
		if err != nil {
			r.closePipes()
			if r.transcript != nil {
				_ = r.transcript.Close()
			}
			if r.place != nil {
				r.place.Leave(context.WithoutCancel(ctx))
			}
			r.task.Release()
		}
	}()
	if r.place, err = r.env.agentPlace(ctx, r.id, r.isolation); err != nil {
		return err
	}
	r.out = shell.NewCollector(shell.Limits{Head: shell.DefaultHead, Tail: shell.DefaultTail})
	if f, err := r.env.Results.Create("agent"); err == nil {
		r.transcript, r.path = f, f.Path()
	} else {
		r.notes = append(r.notes, fmt.Sprintf("Its transcript could not be kept: %v.", err))
	}
	if err := r.startCell(); err != nil {
		return fmt.Errorf("the agent was not started: %w", err)
	}
	r.task.Begin(r.out, r.begun)
	go r.attend(context.WithoutCancel(ctx))
	return nil
}

// startCell starts the runner, and the goroutines that read and write its pipes.
func (r *agentRun) startCell() error {
	spec := CellSpec{Name: "agent " + r.id, Argv: r.runner.argv(r.model, r.session), Dir: r.place.Dir,
		Worktree: r.place.Worktree}
	spec.Agent = agentChild{ID: r.id, Type: r.def.Name, Mode: r.def.Mode, ReadOnly: r.def.ReadsOnly(),
		Tools: r.def.Tools, Denied: r.def.Denied, Servers: r.def.Servers, Call: r.front}
	if r.runner.Cell != nil {
		if err := r.runner.Cell(&spec); err != nil {
			return err
		}
	}
	ours := make([]*os.File, 3)
	for i := range ours {
		read, write, err := os.Pipe()
		if err != nil {
			return err
		}
		r.pipes = append(r.pipes, read, write)
		if i == 0 {
			spec.Files, ours[0] = append(spec.Files, read), write
		} else {
			spec.Files, ours[i] = append(spec.Files, write), read
		}
	}
	var err error
	if r.cell, r.end, err = r.env.Agents.Start(spec); err != nil {
		return err
	}
	for _, f := range spec.Files {
		f.Close()
	}
	r.reading.Go(func() { r.read(ours[1], r.line) })
	r.reading.Go(func() { r.read(ours[2], r.message) })
	r.reading.Go(func() {
		_, _ = io.WriteString(ours[0], r.prompt) // a runner that does not read it shows that by its answer
		ours[0].Close()
	})
	return nil
}

func (r *agentRun) closePipes() {
	for _, f := range r.pipes {
		f.Close() // a second Close is harmless
	}
}

// attend waits for the end of the agent, ends it if necessary, and composes the report.
func (r *agentRun) attend(ctx context.Context) {
	limit := r.env.Agents.MaxTime
	timer := time.NewTimer(limit)
	defer timer.Stop()
	complete, grace := r.complete, (<-chan time.Time)(nil)
	for waits := true; waits; {
		waits = false
		select {
		case <-r.cell.Done():
		case <-r.life.Done():
		case <-timer.C:
			r.stop(fmt.Errorf("it ran longer than %s, the limit agent.maxTime", limit))
		case <-grace:
		case <-complete:
			complete, grace, waits = nil, time.After(answerGrace), true
		}
	}
	_, _ = r.cell.Kill() // first, so that it starts nothing more elsewhere
	r.end()
	r.status, _ = r.cell.Wait()
	lines := r.cell.Close()
	r.pipes[1].Close() // the prompt, if the runner has not read it
	r.reading.Wait()
	r.closePipes()
	r.cause = context.Cause(r.life)
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "[changed ") })
	r.notes = slices.Concat(r.notes, lines, r.place.Leave(ctx))
	if r.transcript != nil {
		_ = r.transcript.Close()
	}
	r.mu.Lock()
	r.files = r.changed()
	r.mu.Unlock()
	result := r.result()
	r.out.Write([]byte(result.Text))
	r.task.EndCall(result.IsError)
}

// read passes each line that the runner prints to take.
func (r *agentRun) read(f *os.File, take func(line []byte)) {
	var line []byte
	buffer := make([]byte, 64<<10)
	for {
		n, err := f.Read(buffer)
		r.mu.Lock()
		if r.bytes += int64(n); r.bytes > maxAgentOutput {
			r.mu.Unlock()
			r.stop(fmt.Errorf("it printed more than %d MiB", maxAgentOutput>>20))
			_, _ = io.Copy(io.Discard, f)
			return
		}
		if r.transcript != nil {
			_, _ = r.transcript.Write(buffer[:n]) // the transcript itself notes what it does not keep
		}
		for rest := buffer[:n]; len(rest) > 0; {
			part, after, ended := bytes.Cut(rest, []byte("\n"))
			line = append(line, part[:min(len(part), maxAgentLine-len(line))]...)
			if rest = after; ended {
				take(line)
				line = line[:0]
			}
		}
		if err != nil && len(line) > 0 {
			take(line)
		}
		calls := r.calls
		r.calls = nil
		r.mu.Unlock()
		r.tell(calls)
		if err != nil {
			return
		}
	}
}

// tell sends calls of the agent as progress, while the client waits for the answer. The caller must not hold the
// lock: a client that does not read blocks the notification.
func (r *agentRun) tell(calls []string) {
	for _, call := range calls {
		if r.env.Progress != nil && r.front.Err() == nil {
			r.env.Progress(call)
		}
	}
}

// message takes a line of messages. The caller holds the lock.
func (r *agentRun) message(line []byte) {
	if room := maxOwnWords*4 - len(r.words); room > 0 {
		r.words = append(append(r.words, line[:min(len(line), room)]...), '\n')
	}
}

// line takes a line of the output. The caller holds the lock.
func (r *agentRun) line(line []byte) {
	e := r.parse(line)
	if !json.Valid(line) && e.Text == "" {
		r.message(line)
		return
	}
	if sessionName.MatchString(e.Session) { // the agent chooses it, and it becomes an argument
		r.session = e.Session
	}
	switch {
	case e.Text == "":
	case e.Append:
		if r.runner.Parse == "text" {
			e.Text += "\n"
		}
		r.answer += e.Text
		if over := len(r.answer) - maxAnswer; over > 0 {
			r.answer = strings.ToValidUTF8(r.answer[over:], "")
		}
	default:
		r.answer = e.Text
	}
	r.failed = r.failed || e.Failed
	for _, call := range e.Calls {
		r.out.Write([]byte(quotedLines(call)))
		call, _ = text.Visible(call)
		r.calls = append(r.calls, strings.ReplaceAll(call, "\n", " "))
	}
	r.count(e)
	if e.Done && !r.finished {
		r.finished = true
		close(r.complete)
	}
}

// count counts turns and tokens, and ends an agent that exceeds its limits. The caller holds the lock.
func (r *agentRun) count(e agent.Event) {
	if e.Turn {
		r.turns++
	}
	if e.All {
		r.tokens = e.Tokens
	} else {
		r.tokens += e.Tokens
	}
	most, limit := r.env.Agents.MaxTurns, "agent.maxTurns"
	if n := r.def.MaxTurns; n > 0 && n < most {
		most, limit = n, "maxTurns of its definition"
	}
	if r.turns > most {
		r.turns = most
		r.stop(fmt.Errorf("it took more than %d turns, the limit %s", most, limit))
	}
	if most := r.env.Agents.MaxTokens; most > 0 && r.tokens > most {
		r.stop(fmt.Errorf("it used more than %d tokens, the limit agent.maxTokens", most))
	}
}
