package builtin

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/builtin/internal/shell"
	"github.com/toolhost/toolhost/guard"
)

// Most programs that ask a person at a terminal end by themselves or at the end of their input: editors such as nano
// and nvim, pagers, top, prompts for passwords and the shells of languages find no terminal or the end of /dev/null,
// and git gets an editor that fails. Two do not: watch, and Vim, which reads keys from its standard error.

// needsTerminal returns the program of a command that would wait for keys that never come: an editor with files but
// without commands, or watch, which runs until it is stopped. If input is piped or redirected into the program, it
// may contain the keys.
func needsTerminal(command guard.Exec) string {
	steps, err := command.Steps()
	if err != nil || steps.Functions {
		return ""
	}
	for _, step := range steps.All {
		if step.Given {
			continue
		}
		name := waiting(step.Words, step.Piped)
		if name != "" && !(name == "watch" && step.Writes) { // watch ends when its output is not read
			return name
		}
	}
	return ""
}

// waitsMessage returns the error for a command that was not run, with what to do instead.
func waitsMessage(program string) error {
	if program == "watch" {
		return errors.New("the command was not run: watch repeats a command until a user at a terminal ends it, and there " +
			"is no terminal. Run the command by itself, or in a loop that ends; with run_in_background watch goes on until " +
			"TaskStop")
	}
	return fmt.Errorf("the command was not run: %s waits for keys, and there is no terminal to press any. Read shows a "+
		"file, and Edit and Write change it; what Vim alone can do it does with vim -es -c COMMAND -c wq FILE", program)
}

func isEditor(program string) bool {
	switch program {
	case "vi", "vim", "rvim", "view", "rview", "vimdiff", "vim.basic", "vim.tiny", "vim.nox", "editor":
		return true
	}
	return false
}

// waiting returns the program of a command, if it waits even when something may be piped into it. A word that is not
// known is most likely a file.
func waiting(words []string, piped bool) string {
	words, fed := unwrapped(words)
	if len(words) == 0 {
		return ""
	}
	name := path.Base(words[0])
	// A program of the workspace, such as ./watch.
	if words[0] != name && words[0] != "/bin/"+name && words[0] != "/usr/bin/"+name {
		return ""
	}
	args := words[1:]
	switch {
	case (name == "sh" || name == "bash") && len(args) == 2 && commandOption.MatchString(args[0]) && !piped:
		return needsTerminal(guard.NewExec(args[1], guard.Path{}))
	case name == "watch" && !watchEnds(args):
		return name
	case isEditor(name) && (!piped || fed || slices.Contains(args, "-")) && !slices.ContainsFunc(args, knownProgram):
		return name
	}
	return ""
}

// unwrapped removes programs that run the command after them. fed reports whether one of them gives that command an
// input.
func unwrapped(words []string) (bare []string, fed bool) {
	for len(words) > 1 && runsDetached(words[0]) {
		fed = fed || words[0] == "xargs"
		own := words[0] != "command" // the options of command ask what it would run
		words = words[1:]
		for own && len(words) > 0 && ofWrapper.MatchString(words[0]) {
			words = words[1:]
		}
	}
	return words, fed
}

// runsDetached reports whether a program runs the command after it, and waits for it.
func runsDetached(program string) bool {
	switch program {
	case "timeout":
		return false
	case "setsid", "sudo":
		return true
	}
	return slices.Contains(wrappers, program)
}

var (
	commandOption = regexp.MustCompile(`^-[elux]*c$`)

	// editorOption matches options and commands of Vim after which it waits: how windows open, what may be changed,
	// and where to begin.
	editorOption = regexp.MustCompile(`^(-[RMmbdnNZ]+|-[oOp][0-9]*|--clean|--noplugin|--|\+[0-9]*|\+/.*)$`)
	// watchOption matches options of watch that do not make it end.
	watchOption = regexp.MustCompile(`^(-[bcCdptwx]*(n[0-9.]*)?|--(differences|interval|no-title|color|exec|beep|precise)(=.*)?)$`)
)

// knownProgram reports whether an argument may tell an editor what to do, so that it ends.
func knownProgram(arg string) bool {
	return arg != "" && arg != "-" && (arg[0] == '-' || arg[0] == '+') && !editorOption.MatchString(arg)
}

// watchEnds reports whether watch may end with these arguments, or has no command to run.
func watchEnds(args []string) bool {
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "" || arg[0] != '-':
			return false
		case !watchOption.MatchString(arg):
			return true
		case strings.HasSuffix(arg, "n") && arg[1] != '-' || arg == "--interval":
			i++ // the value of the option
		}
	}
	return true
}

// terminalHint returns what to do about a program that needs a terminal, according to its output.
func terminalHint(r *shell.Result) string {
	switch {
	case r.TimedOut:
		return ttyHint(r.Text)
	case r.ExitCode != 0 && strings.Contains(r.Text, "problem with the editor 'false'"): // the message of git
		return "There is no editor here: give messages with -m or -F, keep prepared ones with GIT_EDITOR=true, and change " +
			"the steps of a rebase with a command, as in GIT_SEQUENCE_EDITOR=\"sed -i s/^pick/edit/\"."
	}
	return ""
}

// ttyHint returns the hint for a command that still runs, or was ended at its timeout.
func ttyHint(said string) string {
	if strings.Contains(said, "Vim: Warning: Input is not from a terminal") {
		return "Vim waits for keys, and there is no terminal to press any: use Read, Edit and Write for files, or vim -es " +
			"-c COMMAND -c wq FILE."
	}
	return ""
}
