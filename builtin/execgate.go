package builtin

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/sandbox/execgate"
)

// An execGate judges the programs of one command. It is a [shell.Gate].
type execGate struct {
	Execs
	spent chan struct{}
	asks  chan struct{} // holds a token while a question is open: a command has one open question at a time

	mu         sync.Mutex
	memory     map[string]guard.Action // decisions about programs of processes
	events     []ExecEvent
	more       int // events over maxExecEvents
	questions  map[string]*execQuestion
	held       time.Duration
	since      time.Time // start of the current wait; zero if no attempt waits
	waiting    int
	refusals   int // of persons
	background bool
	lasting    bool // for an agent: each question has its own time limit, and none ends the agent
	hosts      hostAnswers

	left    chan struct{}     // closed when the call has ended and the command continues
	parted  chan struct{}     // closed when a question is asked after the call
	part    sync.Once         // closes parted
	pending chan *laterAnswer // the next question after the call
}

// A laterAnswer is a question that is asked after the call, with the channel for its answer.
type laterAnswer struct {
	question ExecQuestion
	answer   chan ExecAnswer // buffered
}

// An execQuestion is a question, with the number of attempts that wait for its answer.
type execQuestion struct {
	done   chan struct{} // closed when answer is set
	answer ExecAnswer
	users  int
	cancel context.CancelFunc
}

// gateOf returns the gate for a command of the call.
func gateOf(env *Env) *execGate {
	if env.Execs != nil {
		return newExecGate(*env.Execs)
	}
	return newExecGate(Execs{Policy: func() *guard.Policy { return env.Policy }})
}

func newExecGate(e Execs) *execGate {
	return &execGate{Execs: e, spent: make(chan struct{}), asks: make(chan struct{}, 1), memory: map[string]guard.Action{},
		questions: map[string]*execQuestion{},
		left:      make(chan struct{}), parted: make(chan struct{}), pending: make(chan *laterAnswer)}
}

// Judge decides whether a program starts.
func (g *execGate) Judge(ctx context.Context, e *execgate.Exec) execgate.Verdict {
	finding := g.Policy().Commands().JudgeExec(e)
	if finding.Action == guard.Allow {
		return g.allowed(e, finding.Confirm)
	}
	event, key := describeExec(e, finding)
	switch was, known := g.recall(key); {
	case known:
		event.Action = was
	case finding.Action == guard.Ask &&
		slices.ContainsFunc(g.Granted, func(grant guard.ExecGrant) bool { return grant.Covers(finding, e.Args) }):
		event.Action = guard.Allow
		g.remember(key, event.Action)
	default:
		if !g.decide(ctx, e, finding, &event) {
			return execgate.Verdict{} // the process has ended
		}
		g.remember(key, event.Action)
		g.note(event)
	}
	if event.Action != guard.Allow {
		return execgate.Verdict{}
	}
	return g.allowed(e, true)
}

// allowed lets a program start, and records an event if it could not be checked again.
func (g *execGate) allowed(e *execgate.Exec, confirm bool) execgate.Verdict {
	args := e.Args
	return execgate.Verdict{Allow: true, Confirm: confirm, Failed: func(why string) {
		g.note(ExecEvent{Text: lineOf(args), Action: guard.Deny, Rule: guard.RuleUnreadable, Reason: why})
	}}
}

// decide decides about an attempt without an earlier decision. It reports false if the process no longer waits.
func (g *execGate) decide(ctx context.Context, e *execgate.Exec, finding guard.ExecFinding, event *ExecEvent) bool {
	if finding.Action == guard.Ask {
		answer, err := g.ask(ctx, e, finding, event.Chain)
		if err != nil {
			return false
		}
		event.By, event.Action = answer.By, guard.Deny
		event.Reason = strings.Join(slices.DeleteFunc([]string{finding.Reason, answer.Reason},
			func(s string) bool { return s == "" }), "; ")
		if answer.Allowed {
			event.Action = guard.Allow
		}
	}
	return true
}

// describeExec returns the event of a finding, and a key of the attempt: the process and the program. A refused
// attempt is often repeated, in each directory of PATH; an allowed one may be a script that starts the program.
func describeExec(e *execgate.Exec, f guard.ExecFinding) (event ExecEvent, key string) {
	var asker execgate.Asker
	if e.Asker != nil {
		asker = e.Asker()
	}
	args := e.Args
	if len(args) == 0 {
		args = []string{e.Path}
	}
	event = ExecEvent{Text: lineOf(args), Action: f.Action, Rule: f.Rule, Source: f.Source, Reason: f.Reason,
		Chain: asker.Chain}
	if len(f.Words) > 0 && path.Base(args[0]) != path.Base(f.Words[0]) {
		event.Text += " (as " + lineOf(f.Words) + ")"
	}
	return event, fmt.Sprintf("%d %d %d %s %s\x00%s", e.Thread, asker.Process, asker.Started, f.Action, f.Rule,
		strings.Join(f.Words, "\x00"))
}

// lineOf returns a program and its arguments for a line of a result or a log.
func lineOf(words []string) string {
	const longest = 400
	return guard.Shorten(guard.Quote(words...), longest)
}

func (g *execGate) recall(key string) (guard.Action, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a, ok := g.memory[key]
	return a, ok
}

func (g *execGate) remember(key string, a guard.Action) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.memory) >= maxExecMemory {
		clear(g.memory)
	}
	g.memory[key] = a
}

// note records an event, and passes it on.
func (g *execGate) note(event ExecEvent) {
	g.mu.Lock()
	keep := len(g.events) < maxExecEvents
	if keep {
		g.events = append(g.events, event)
	} else {
		g.more++
	}
	g.mu.Unlock()
	if keep && g.Tell != nil {
		g.Tell(event)
	}
}

// errAskerGone means that the process no longer waits for the answer.
var errAskerGone = errors.New("the process that wanted to start the program has ended")

// ask waits for the answer of a person. Equal questions are asked once, and a refusal answers all that wait.
func (g *execGate) ask(ctx context.Context, e *execgate.Exec, f guard.ExecFinding, chain []string) (ExecAnswer, error) {
	if g.Ask == nil {
		return ExecAnswer{Reason: "a person must approve it, and this client cannot ask one"}, nil
	}
	key := f.Rule + "\x00" + strings.Join(f.Words, "\x00")
	asked := ExecQuestion{Words: slices.Clone(f.Words), Rule: f.Rule, Source: f.Source, Why: f.Reason, Chain: chain,
		Dir: e.Dir, Program: e.Path}
	if len(e.Files) > 0 && e.Files[0].Name != "" {
		asked.Program = e.Files[0].Name
	}
	asked.Text = guard.Shorten(guard.Quote(append([]string{asked.Program}, e.Args[min(1, len(e.Args)):]...)...),
		maxExecText)
	if len(f.Words) > 0 && path.Base(asked.Program) != path.Base(f.Words[0]) {
		asked.Text += " (as " + lineOf(f.Words) + ")"
	}
	if e.Cut {
		asked.Text += " … and more arguments, which are not shown"
	}
	return g.pose(ctx, key, asked)
}

// pose waits for the answer to a question. Equal ones have the same key.
func (g *execGate) pose(ctx context.Context, key string, asked ExecQuestion) (ExecAnswer, error) {
	if g.Known != nil && g.Known(asked) {
		return ExecAnswer{Allowed: true, Reason: "it is always allowed in this conversation"}, nil
	}
	g.mu.Lock()
	q := g.questions[key]
	if q == nil {
		life, cancel := context.WithCancel(context.WithoutCancel(ctx))
		q = &execQuestion{done: make(chan struct{}), cancel: cancel}
		g.questions[key] = q
		go g.put(life, q, key, asked)
	}
	q.users++
	g.begin()
	g.mu.Unlock()
	defer g.leave(q, key)
	select {
	case <-q.done:
		return q.answer, nil
	case <-ctx.Done():
		return ExecAnswer{}, errAskerGone
	}
}

// begin counts one more attempt that waits. The caller holds the lock.
func (g *execGate) begin() {
	if g.waiting++; g.waiting == 1 {
		g.since = time.Now()
	}
}

// leave counts one attempt less that waits. It withdraws a question for which no attempt waits.
func (g *execGate) leave(q *execQuestion, key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting--; g.waiting == 0 {
		g.held += time.Since(g.since)
		g.since = time.Time{}
	}
	if q.users--; q.users == 0 {
		g.withdraw(q, key)
		q.cancel()
	}
}

// withdraw removes a question, so that equal ones no longer join it. The caller holds the lock.
func (g *execGate) withdraw(q *execQuestion, key string) {
	if g.questions[key] == q {
		delete(g.questions, key)
	}
}

// put asks a question after the previous ones were answered.
func (g *execGate) put(ctx context.Context, q *execQuestion, key string, asked ExecQuestion) {
	defer q.cancel()
	g.mu.Lock()
	refusals := g.refusals
	g.mu.Unlock()
	var answer ExecAnswer
	select {
	case g.asks <- struct{}{}:
		answer = g.answer(ctx, refusals, asked)
		<-g.asks
	case <-ctx.Done():
	}
	if asked.Host && ctx.Err() == nil {
		g.heard(asked, answer)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !answer.Allowed && ctx.Err() == nil && !asked.Host {
		g.refusals++
	}
	q.answer = answer
	g.withdraw(q, key)
	close(q.done)
}

// answer gets the answer to a question. refusals is the number of refusals before the question.
func (g *execGate) answer(ctx context.Context, refusals int, asked ExecQuestion) ExecAnswer {
	g.mu.Lock()
	left := execWait
	if !g.lasting {
		left -= g.heldNow()
	}
	refused := g.refusals > refusals
	asked.Background = g.background
	g.mu.Unlock()
	switch {
	case asked.Host:
		return g.answerHost(ctx, asked)
	case refused:
		return ExecAnswer{Reason: "a person has refused another program of this command"}
	}
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	answer := g.askIn(ctx, asked)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && !answer.Allowed {
		g.mu.Lock()
		defer g.mu.Unlock()
		select {
		case <-g.spent:
		default:
			if !g.lasting {
				close(g.spent)
			}
		}
		answer.Reason = fmt.Sprintf("no person answered within %s, the limit of a command", execWait)
	}
	return answer
}

// askIn asks a question during the call, or after it.
func (g *execGate) askIn(ctx context.Context, asked ExecQuestion) ExecAnswer {
	if !g.Later || asked.Background {
		return g.Ask(ctx, asked)
	}
	g.part.Do(func() { close(g.parted) })
	later := &laterAnswer{asked, make(chan ExecAnswer, 1)}
	select {
	case g.pending <- later:
	case <-g.left:
		asked.Background = true
		return g.Ask(ctx, asked)
	case <-ctx.Done():
		return ExecAnswer{}
	}
	select {
	case a := <-later.answer:
		return a
	case <-ctx.Done():
		return ExecAnswer{}
	}
}

// Held returns how long the command has waited for a person.
func (g *execGate) Held() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.heldNow()
}

// heldNow is Held. The caller holds the lock.
func (g *execGate) heldNow() time.Duration {
	if g.waiting == 0 {
		return g.held
	}
	return g.held + time.Since(g.since)
}

// Spent returns a channel that is closed when the command has waited too long for a person.
func (g *execGate) Spent() <-chan struct{} { return g.spent }

// Parted returns a channel that is closed when a question is asked after the call.
func (g *execGate) Parted() <-chan struct{} { return g.parted }

// leaves records that the call has ended and the command continues.
func (g *execGate) leaves() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.background {
		close(g.left)
	}
	g.background = true
}

// reapAfterCall reports whether a question is asked after the call.
func (g *execGate) reapAfterCall() bool {
	select {
	case <-g.parted:
		return true
	default:
		return false
	}
}
