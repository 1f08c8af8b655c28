package builtin

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

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
	statements, err := command.Statements()
	if err != nil {
		return ""
	}
	own := false
	eachNode(statements, func(n syntax.Node) bool {
		_, decl := n.(*syntax.FuncDecl)
		own = own || decl // it may declare a function of that name
		return !own
	})
	if own {
		return ""
	}
	return waitingAmong(statements)
}

// waitsMessage returns the error for a command that was not run, with what to do instead.
func waitsMessage(program string) error {
	if program == "watch" {
		return errors.New("the command was not run: watch repeats a command until a user at a terminal ends it, and there is no terminal. Run the command by itself, or in a loop that ends; with run_in_background watch goes on until TaskStop")
	}
	return fmt.Errorf("the command was not run: %s waits for keys, and there is no terminal to press any. Read shows a file, and Edit and Write change it; what Vim alone can do it does with vim -es -c COMMAND -c wq FILE", program)
}

func isEditor(program string) bool {
	switch program {
	case "vi", "vim", "rvim", "view", "rview", "vimdiff", "vim.basic", "vim.tiny", "vim.nox", "editor":
		return true
	}
	return false
}

// waitingAmong returns the first program in a list of statements that waits. It stops at a statement after which a
// name may mean another program.
func waitingAmong(list []*syntax.Stmt) string {
	for _, stmt := range list {
		if stmt.Background || stmt.Coprocess || slices.ContainsFunc(stmt.Redirs, isInput) {
			continue
		}
		if name := waitingIn(stmt.Cmd); name != "" {
			return name
		}
	}
	return ""
}

func isInput(r *syntax.Redirect) bool {
	switch r.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll, syntax.DplOut:
		return false
	}
	return true
}

func waitingIn(c syntax.Command) string {
	switch c := c.(type) {
	case *syntax.CallExpr:
		return waitingCall(c, false)
	case *syntax.BinaryCmd:
		if c.Op == syntax.AndStmt || c.Op == syntax.OrStmt {
			return waitingAmong([]*syntax.Stmt{c.X, c.Y})
		}
		return waitingPiped(c)
	case *syntax.Subshell:
		return waitingAmong(c.Stmts)
	case *syntax.Block:
		return waitingAmong(c.Stmts)
	case *syntax.IfClause:
		name := ""
		for ; c != nil && name == ""; c = c.Else {
			name = waitingAmong(slices.Concat(c.Cond, c.Then))
		}
		return name
	case *syntax.ForClause:
		return waitingAmong(c.Do)
	case *syntax.WhileClause:
		return waitingAmong(slices.Concat(c.Cond, c.Do))
	case *syntax.CaseClause:
		for _, item := range c.Items {
			if name := waitingAmong(item.Stmts); name != "" {
				return name
			}
		}
	case *syntax.TimeClause:
		if c.Stmt != nil {
			return waitingAmong([]*syntax.Stmt{c.Stmt})
		}
	}
	return ""
}

// waitingPiped examines both ends of a pipe: watch ends when its output is not read.
func waitingPiped(c *syntax.BinaryCmd) string {
	if name := waitingAmong([]*syntax.Stmt{c.X}); name != "" && name != "watch" {
		return name
	}
	if call, ok := c.Y.Cmd.(*syntax.CallExpr); ok && !slices.ContainsFunc(c.Y.Redirs, isInput) {
		return waitingCall(call, true)
	}
	return ""
}

// waitingCall returns the program of a simple command, if it waits even when something may be piped into it.
func waitingCall(c *syntax.CallExpr, piped bool) string {
	words := make([]string, len(c.Args))
	for i, arg := range c.Args {
		words[i] = wordText(arg) // "" if it is not known before the line runs: most likely a file
	}
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
		return "There is no editor here: give messages with -m or -F, keep prepared ones with GIT_EDITOR=true, and change the steps of a rebase with a command, as in GIT_SEQUENCE_EDITOR=\"sed -i s/^pick/edit/\"."
	}
	return ""
}

// ttyHint returns the hint for a command that still runs, or was ended at its timeout.
func ttyHint(said string) string {
	if strings.Contains(said, "Vim: Warning: Input is not from a terminal") {
		return "Vim waits for keys, and there is no terminal to press any: use Read, Edit and Write for files, or vim -es -c COMMAND -c wq FILE."
	}
	return ""
}
