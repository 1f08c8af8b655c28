package builtin

import (
	"context"
	"net"
	"slices"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/sandbox/connectgate"
	"github.com/toolhost/toolhost/guard/settings"
)

// maxStrayed is how many refused uses of masked credentials are recorded of one command.
const maxStrayed = 100

// hostAnswers are the answers about the hosts of one command. The mutex of the gate guards them.
type hostAnswers struct {
	known   map[string]ExecAnswer // by host and port
	used    map[string]bool       // of credentials
	strayed int                   // uses that were refused
	asked   int                   // questions
	unheard int                   // questions that no person answered
}

// Connect decides whether the command reaches a host that no setting names. It is a [connectgate.Judge]. A person's
// answer holds for the command: a program that has given up meanwhile gets it when it tries again.
func (g *execGate) Connect(ctx context.Context, c connectgate.Connection) (allowed bool, why string) {
	if c.Secret != "" {
		g.used(c)
		return true, ""
	}
	commands := g.Policy().Commands()
	if commands.ProgramReaches(c.Program, c.Host, c.Port) {
		return true, ""
	}
	if commands.Discard() {
		return g.connect(ctx, c, "")
	}
	return g.connect(ctx, c, commands.ProgramName(c.Program))
}

// connect asks a person. name is the name by which settings can allow the program, or "" if they cannot.
func (g *execGate) connect(ctx context.Context, c connectgate.Connection, name string) (allowed bool, why string) {
	if g.Ask == nil || !g.Hosts {
		return false, ""
	}
	host := net.JoinHostPort(c.Host, c.Port)
	g.mu.Lock()
	answer, known := g.hosts.known[host]
	g.mu.Unlock()
	if !known {
		asked := ExecQuestion{Text: host, Words: []string{"connect", host}, Host: true,
			Chain: slices.Clone(c.Chain), Program: c.Program.Path}
		if name != "" {
			asked.Program, asked.Entry = name, settings.ProgramHost(name, host)
		}
		answer, _ = g.pose(ctx, "host\x00"+host+"\x00"+asked.Program, asked) // after an error the answer refuses
	}
	switch {
	case answer.Allowed:
		return true, ""
	case answer.By == "":
		return false, "" // no person has decided
	case answer.Reason == "":
		return false, "a person refused it for this call"
	}
	return false, "a person refused it for this call: " + answer.Reason
}

// used records that the command has used a masked credential, or tried to, once for each host.
func (g *execGate) used(c connectgate.Connection) {
	event := ExecEvent{Text: "send " + c.Secret + " to " + net.JoinHostPort(c.Host, c.Port), Chain: c.Chain,
		Action: guard.Allow, Rule: "sandbox.credentials", Reason: c.Refused}
	if c.Refused != "" {
		event.Action = guard.Deny
	}
	key := event.Text + c.Refused
	g.mu.Lock()
	known := g.hosts.used[key] || c.Refused != "" && g.hosts.strayed >= maxStrayed
	if g.hosts.used == nil {
		g.hosts.used = map[string]bool{}
	}
	if !known && c.Refused != "" {
		g.hosts.strayed++
	}
	if !known {
		g.hosts.used[key] = true
	}
	g.mu.Unlock()
	if !known && g.Tell != nil {
		g.Tell(event)
	}
}

// answerHost gets the answer to a question about a host. Only that connection waits for it. If no answer comes, the
// host is refused, and the command continues.
func (g *execGate) answerHost(ctx context.Context, asked ExecQuestion) ExecAnswer {
	g.mu.Lock()
	answer, known := g.hosts.known[asked.Text]
	most := g.hosts.asked >= maxHostQuestions || g.hosts.unheard >= maxUnheard
	if !known && !most {
		g.hosts.asked++
	}
	g.mu.Unlock()
	if known || most {
		return answer
	}
	ctx, cancel := context.WithTimeout(ctx, hostWait)
	defer cancel()
	answer = g.askIn(ctx, asked)
	if ctx.Err() != nil && !answer.Allowed {
		g.mu.Lock()
		g.hosts.unheard++
		g.mu.Unlock()
		return ExecAnswer{}
	}
	return answer
}

// heard stores the answer of a person about a host.
func (g *execGate) heard(asked ExecQuestion, answer ExecAnswer) {
	g.mu.Lock()
	_, known := g.hosts.known[asked.Text]
	if answer.By == "" || known {
		g.mu.Unlock()
		return
	}
	if g.hosts.known == nil {
		g.hosts.known = map[string]ExecAnswer{}
	}
	if !answer.Kept {
		g.hosts.known[asked.Text] = answer
	}
	g.mu.Unlock()
	event := ExecEvent{Text: "connect to " + asked.Text, Chain: asked.Chain, By: answer.By, Action: guard.Deny,
		Reason: answer.Reason}
	if answer.Allowed {
		event.Action, event.Reason = guard.Allow, "for this call, if the program tries again, too"
		if answer.Kept {
			event.Reason = "for " + asked.Program + " in this workspace, from now on"
		}
		g.note(event)
	} else if g.Tell != nil { // the sandbox records its own refusals
		g.Tell(event)
	}
}
