package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/toolhost/toolhost/guard"
)

// Limits of the questions and events of the programs of one command.
const (
	// execWait is how long the programs of one command may wait for a person in total. Then the command is ended.
	execWait = 5 * time.Minute
	// maxExecEvents limits the recorded refusals and approvals of one command. Further ones are only counted.
	maxExecEvents = 100
	// maxExecMemory limits the remembered decisions of one command.
	maxExecMemory = 4096
	// maxExecText limits the text of a question, in characters. Longer texts are shown by their beginning and end.
	maxExecText = 10_000
	// hostWait is how long a question about a host waits for a person. Then the connection is refused. It is about as
	// long as the kernel of Linux tries to connect.
	hostWait = 2 * time.Minute
	// maxHostQuestions limits the hosts of one command about which a person is asked, and maxUnheard how many of these
	// questions are not answered. Further hosts are refused without a question.
	maxHostQuestions, maxUnheard = 10, 3
	// maxExecLines limits the lines about refusals and approvals in a result.
	maxExecLines = 20
)

// Execs says how the programs that a command starts are judged.
type Execs struct {
	// Policy returns the current rules of the caller.
	Policy func() *guard.Policy
	// Granted are commands that a person has approved as part of the call.
	Granted []guard.ExecGrant
	// Ask asks a person and waits for the answer. It is nil if no person can be asked.
	Ask func(ctx context.Context, q ExecQuestion) ExecAnswer
	// Hosts means that a person is asked about hosts, too.
	Hosts bool
	// Known reports whether a person always allows a program. It may be nil.
	Known func(q ExecQuestion) bool
	// Later means that questions are asked by [Result].Asks: the call ends and its command continues as a task.
	Later bool
	// Tell is called with each event. It may be called after the call has ended, from several goroutines.
	Tell func(ExecEvent)
}

// An ExecQuestion is the question whether a program may start, or reach a host.
type ExecQuestion struct {
	// Text is the file of the program with its arguments, quoted as for a shell, or the host with its port. Words are
	// its words in the form that the rule matches.
	Text  string
	Words []string
	// Host means that the question is about a host.
	Host bool
	// Program is the file of the program. Of one that connects it is the name by which sandbox.network.programs knows
	// it, else its file, or "" if it is not known.
	Program string
	// Entry is what of sandbox.network.programs would allow the connection. It is "" if the program is not known there.
	Entry string
	// Rule is the rule that requires approval, and Source its file. Why says more, if the rule alone does not explain
	// the question.
	Rule, Source, Why string
	// Chain are the programs from the command's shell to the one that starts it, or connects.
	Chain []string
	// Dir is the directory it starts in.
	Dir string
	// Background means that the call of the command has ended.
	Background bool
	// Held are protected files that the command has changed. Then the question is whether they stay, and not about a
	// program.
	Held []HeldFile
}

// An ExecAnswer is a person's answer to an [ExecQuestion]. The zero ExecAnswer refuses.
type ExecAnswer struct {
	Allowed bool
	// Kept means that the settings allow it from now on, to the program alone: other ones of the command are asked
	// about.
	Kept   bool
	Reason string // of a refusal
	By     string // the channel: the client, the console or a hook
}

// An ExecAsked is a question about a program of a command that waits as a task. Another call answers it.
type ExecAsked struct {
	Question ExecQuestion
	Task     string // the id of the task
	// Resume passes the answer on, and waits for the command as its call did. It may be called once.
	Resume func(ctx context.Context, a ExecAnswer) (Result, error)
	// Elicit are the params of a question of another server. Then Answer is used instead of Resume, with its result.
	Elicit json.RawMessage
	Answer func(ctx context.Context, result json.RawMessage) (Result, error)
}

// An ExecEvent records that a program was refused, or started because a person allowed it.
type ExecEvent struct {
	Text         string
	Action       guard.Action
	Rule, Source string
	Reason       string // further information
	Chain        []string
	By           string // the channel; "" if no person was asked
}

// String returns the line about the event in a result.
func (e ExecEvent) String() string {
	what := "Refused: "
	if e.Action == guard.Allow {
		what = "Allowed by a person: "
	}
	line := what + e.Text
	if len(e.Chain) > 0 {
		line += " (" + Chain(e.Chain) + " → " + e.Text + ")"
	}
	var why []string
	if e.Rule != "" {
		why = append(why, "rule "+e.Rule)
	}
	if e.Source != "" {
		why = append(why, e.Source)
	}
	line += ": " + strings.Join(why, ", ")
	if len(why) > 0 && e.Reason != "" {
		line += "; "
	}
	return guard.OneLine(line + e.Reason + ".")
}

// Chain returns the names of programs that start each other, for a line. The programs choose them.
func Chain(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = guard.Quote(name)
	}
	return strings.Join(quoted, " → ")
}

// lines returns the lines about refusals and approvals in a result, without duplicates.
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
