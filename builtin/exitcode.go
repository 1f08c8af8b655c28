package builtin

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/builtin/internal/shell"
	"github.com/toolhost/toolhost/guard"
)

// answers are the programs whose exit code 1 is not a failure but an answer, and the meaning of that answer.
var answers = map[string]string{
	"grep": "nothing matched", "egrep": "nothing matched", "fgrep": "nothing matched", "zgrep": "nothing matched",
	"rg": "nothing matched", "ug": "nothing matched", "ag": "nothing matched", "ack": "nothing matched",
	"diff": "the files differ", "cmp": "the files differ", "colordiff": "the files differ", "zdiff": "the files differ",
	"test": "the condition is false", "[": "the condition is false",
	"expr": "the result is zero or empty", "let": "the result is zero",
	"find":  "some directories could not be read, or what -exec ran did not succeed",
	"which": "it was not found", "type": "it was not found", "hash": "it was not found",
	"pgrep": "no process matched", "pidof": "no process matched",
	"!": "the command after it succeeded", "[[": "the condition is false", "((": "the result is zero",
}

// subcommandAnswers are programs of which only some subcommands answer with exit code 1. needs are options that such
// an answer requires.
var subcommandAnswers = []struct {
	name, command string
	needs         []string // one of them must be given; nil: none is needed
	means         string
}{
	{"git", "grep", nil, "nothing matched"},
	{"git", "diff", []string{"--exit-code", "--quiet", "--no-index"}, "there are differences"},
	{"git", "config", nil, "it is not set"},
	{"git", "check-ignore", nil, "none of them is ignored"},
	{"git", "merge-base", []string{"--is-ancestor"}, "it is no ancestor"},
	{"git", "ls-files", []string{"--error-unmatch"}, "it is not tracked"},
	{"git", "rev-parse", []string{"--verify"}, "there is no such revision"},
	{"git", "show-ref", nil, "there is no such ref"},
	{"command", "-v", nil, "it was not found"},
	{"command", "-V", nil, "it was not found"},
	{"jq", "", []string{"-e", "--exit-status"}, "the result is null or false"},
}

// wrappers run the command that follows their own options.
var wrappers = []string{"builtin", "command", "env", "exec", "nice", "nohup", "stdbuf", "time", "timeout", "xargs"}

// Programs that exit with 1 only after they have printed an error: builtins of bash, and others by name.
var (
	builtinsComplain = []string{":", "cd", "echo", "export", "popd", "printf", "pushd", "pwd", "set", "shopt", "true",
		"umask", "unset"}
	programsComplain = []string{"cat", "cp", "date", "head", "ln", "ls", "mkdir", "mv", "rm", "rmdir", "sleep", "sort",
		"stat", "tail", "touch", "tr", "uniq", "wc"}
)

// xargsFailed is the exit code of xargs if a program that it ran has exited with 1 to 125 (xargs(1)).
const xargsFailed = 123

// explain returns the meaning of the exit code if it is an answer and not a failure: if only such a program can have
// set it. Otherwise it returns "".
func explain(command guard.Exec, r *shell.Result) string {
	if r.ExitCode != 1 && r.ExitCode != xargsFailed || r.Signal != "" || r.TimedOut || r.Cancelled {
		return ""
	}
	s := status{code: r.ExitCode, output: "\n" + r.Text}
	if !s.read(command) || s.failure || s.program == "" {
		return ""
	}
	return fmt.Sprintf("Exit code %d of %s means: %s.", r.ExitCode, s.program, s.means)
}

// A status determines which program may have set the exit code of a line.
type status struct {
	code     int
	output   string // the output of the line
	silenced bool   // error messages were redirected

	program, means string // the last program that may have answered, and the meaning
	failure        bool   // the exit code may be a failure
}

// read looks at what may have set the exit code of a line, and reports whether the line was read.
func (s *status) read(command guard.Exec) bool {
	steps, err := command.Steps()
	if err != nil {
		return false
	}
	s.silenced = s.silenced || steps.Silenced
	s.failure = s.failure || steps.ErrExit // any command may have ended the line
	for _, step := range steps.All {
		if step.Last {
			s.run(step.Words)
		}
	}
	return true
}

// run handles a program with its arguments. An argument that is not known before the line runs is "".
func (s *status) run(words []string) {
	name := path.Base(words[0])
	for _, a := range subcommandAnswers {
		if a.name == name && answersTo(words[1:], a.command, a.needs) {
			// Such as for a key that does not exist.
			s.failure = s.failure || a.command == "config" && s.complained("error: ")
			s.answer(strings.TrimSpace(name+" "+a.command), a.means)
			return
		}
	}
	means, ok := answers[name]
	switch {
	case name == "find" && slices.Contains(words, "-delete"): // a file is left that should have been deleted
		s.failure = true
	case ok:
		s.answer(name, means)
	case s.silent(name):
	case slices.Contains(wrappers, name):
		s.wrapped(words)
	case (name == "bash" || name == "sh") && len(words) == 3 && words[1] == "-c" && words[2] != "":
		s.failure = !s.read(guard.NewExec(words[2], guard.Path{})) || s.failure
	default:
		s.failure = true
	}
}

// silent reports whether a program that prints an error when it fails has printed none.
func (s *status) silent(name string) bool {
	return !s.silenced && (slices.Contains(builtinsComplain, name) && !strings.Contains(s.output, "bash: ") ||
		slices.Contains(programsComplain, name) && !s.complained(name+": "))
}

// complained reports whether a line of the output begins with a text.
func (s *status) complained(beginning string) bool { return strings.Contains(s.output, "\n"+beginning) }

// wrapped handles the program that a wrapper runs: the first word that is not an option, variable, number or time of
// the wrapper. If that word is the value of an option, it names no program that answers, and the line may have
// failed.
func (s *status) wrapped(words []string) {
	i := 1 + slices.IndexFunc(words[1:], func(word string) bool { return !ofWrapper.MatchString(word) })
	if i == 0 || words[i] == "" {
		s.failure = true
		return
	}
	inner := status{code: 1, output: s.output, silenced: s.silenced}
	if inner.run(words[i:]); inner.failure || inner.program == "" {
		s.failure = true
		return
	}
	if s.code == xargsFailed {
		s.answer("xargs", fmt.Sprintf("%s exited with 1, of some of the files", inner.program))
		return
	}
	s.answer(inner.program, inner.means)
}

// ofWrapper matches the words between a wrapper and the program that it runs.
var ofWrapper = regexp.MustCompile(`^(-.*|\w+=.*|[0-9.]+[smhd]?|\{\})$`)

// answersTo reports whether command is the first argument that is neither an option nor the value of one, and whether
// the arguments include an option that it needs.
func answersTo(args []string, command string, needs []string) bool {
	i := 0
	for command != "" && i < len(args) && args[i] != command {
		if !strings.HasPrefix(args[i], "-") {
			return false
		}
		if args[i] == "-C" || args[i] == "-c" { // options of git that take a value
			i++
		}
		i++
	}
	return (command == "" || i < len(args)) &&
		(needs == nil || slices.ContainsFunc(args, func(a string) bool { return slices.Contains(needs, a) }))
}

func (s *status) answer(program, means string) {
	if s.code == 1 || program == "xargs" { // no other known program exits with 123
		s.program, s.means = program, means
	}
}
