package guard

import "github.com/toolhost/toolhost/guard/internal/command"

// Exec runs a shell command line. Its rules are those of Bash, and those on the files that it names.
type Exec struct {
	Text string
	// Dir is the directory that the command starts in.
	Dir Path
	// Unsandboxed says that the call asks to run outside the containment.
	Unsandboxed bool
	// Background says that the command continues after the call.
	Background bool
	// Description is the agent's description of the command, for logs. Nothing depends on it.
	Description string

	line *command.Analysis // of Text, see NewExec
}

// NewExec returns the effect of running a text. The text is parsed once: whatever asks about it later uses the result.
func NewExec(text string, dir Path) Exec {
	return Exec{Text: text, Dir: dir, line: command.Analyze(text)}
}

// Steps returns the commands that a shell comes to when it runs the text, and an error if it was not read whole.
func (e Exec) Steps() (Steps, error) { return e.analysis().Steps() }

// Steps are the commands of a text, for what a result says of them.
type Steps = command.Steps

// Words returns the words of a text that is one command of literal words, and nothing else; nil for any other.
func (e Exec) Words() []string { return e.analysis().Words() }

// analysis returns what the text is made of.
func (e Exec) analysis() *command.Analysis {
	if e.line == nil {
		return command.Analyze(e.Text)
	}
	return e.line
}

// Judge implements [Effect].
func (e Exec) Judge(j Judgment) {
	if c := j.judge.in.Command(); c == nil || *c != e { // other checks of the command would see a different one
		j.judge.add(Part{What: "run " + e.Text, Action: Deny, Source: builtIn, Final: true,
			Reason: "A call runs one command at most.", Remedy: "This is a defect of the tool; report it."})
		return
	}
	j.judge.exec = &e
	j.judge.command(e)
	j.judge.exec = nil
}

// Permission implements [Effect].
func (Exec) Permission() Permission { return ToExec }

// Record implements [Effect].
func (e Exec) Record() (field, value string) { return "command", e.Text }

// HookResponse returns the fields of the response that hooks get in addition to the text, with Claude Code's names: one
// stream, in order.
func (Exec) HookResponse(text string) map[string]any {
	return map[string]any{"stdout": text, "stderr": "", "interrupted": false}
}

// Command returns the command that the call would run, nil if it runs none. No call runs two: the second would be
// refused.
func (in Intent) Command() *Exec {
	for _, e := range in.Effects {
		if c, ok := e.(Exec); ok {
			return &c
		}
	}
	return nil
}
