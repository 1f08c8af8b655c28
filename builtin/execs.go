package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/guard"
)

// Limits of the questions and events of the programs of one command.
const (
	// execWait is how long the programs of one command may wait for a person, in all. Then the whole command is ended.
	execWait = 5 * time.Minute
	// maxExecEvents bounds how many refusals and approvals of one command are recorded; the others are counted.
	maxExecEvents = 100
	// maxExecMemory bounds how many decisions of one command are remembered.
	maxExecMemory = 4096
	// maxExecLines bounds the lines about refusals and approvals in a result.
	maxExecLines = 20
)

// Execs says how the programs that a command starts are judged.
type Execs struct {
	// Policy returns the caller's rules as they are now.
	Policy func() *guard.Policy
	// Granted are commands that a person has allowed with the text of the call.
	Granted []guard.ExecGrant
	// Ask puts a question to a person and waits for the answer. Nil: no person can be asked.
	Ask func(ctx context.Context, q ExecQuestion) ExecAnswer
	// Known reports whether a person has allowed a program for good. Nil: none has.
	Known func(q ExecQuestion) bool
	// Later says that the questions of a call that waits are put by [Result].Asks: the call ends, its command goes on as a task.
	Later bool
	// Tell is called with each event. It may be called after the call has ended, from several goroutines.
	Tell func(ExecEvent)
}

// An ExecQuestion asks a person whether a program may start.
type ExecQuestion struct {
	// Text is the program with its arguments, and Words the same, word by word, with the program where links lead.
	Text  string
	Words []string
	// Program is the file of the program.
	Program string
	// Rule asks, from Source.
	Rule, Source string
	// Chain are the programs from the command's shell to the one that starts it.
	Chain []string
	// Dir is the directory it starts in.
	Dir string
	// Background says that the call of the command has ended.
	Background bool
}

// An ExecAnswer is a person's answer to an [ExecQuestion]. The zero ExecAnswer refuses.
type ExecAnswer struct {
	Allowed bool
	Reason  string // of a refusal
	By      string // what asked: the client, the console or a hook
}

// An ExecAsked is a question about a program of a command that waits as a task. It is answered by a call of its own.
type ExecAsked struct {
	Question ExecQuestion
	Task     string // the id of the task
	// Resume hands the answer on, and waits for the command as its call did. It may be called once.
	Resume func(ctx context.Context, a ExecAnswer) (Result, error)
	// Elicit are the params of a question of another server, put as they are; Answer hands on its result in the place of Resume.
	Elicit json.RawMessage
	Answer func(ctx context.Context, result json.RawMessage) (Result, error)
}

// An ExecEvent is a program that was not started, or was because a person allowed it.
type ExecEvent struct {
	Text         string
	Action       guard.Action
	Rule, Source string
	Reason       string // what else there is to say of it
	Chain        []string
	By           string // what asked; "" if no person was asked
}

// String is the line of a result about the event.
func (e ExecEvent) String() string {
	what := "Refused: "
	if e.Action == guard.Allow {
		what = "Allowed by a person: "
	}
	line := what + e.Text
	if len(e.Chain) > 0 {
		line += " (" + strings.Join(append(slices.Clone(e.Chain), e.Text), " → ") + ")"
	}
	line += ": rule " + e.Rule
	if e.Source != "" {
		line += ", " + e.Source
	}
	if e.Reason != "" {
		line += "; " + e.Reason
	}
	return line + "."
}

// lines are what a result tells of refusals and approvals, equal ones once.
func (g *execGate) lines() (lines []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	times := map[string]int{}
	for _, event := range g.events {
		line := event.String()
		if times[line]++; times[line] == 1 {
			lines = append(lines, line)
		}
	}
	for i, line := range lines {
		if n := times[line]; n > 1 {
			lines[i] = fmt.Sprintf("%s, %d times.", strings.TrimSuffix(line, "."), n)
		}
	}
	more := g.more
	if len(lines) > maxExecLines {
		more += len(lines) - maxExecLines
		lines = lines[:maxExecLines]
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("%s more were refused or allowed by a person.", count(more, "program")))
	}
	return lines
}

// onLines writes lines after a text.
func onLines(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}
