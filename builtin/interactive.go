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

// Of the programs that ask a person at a terminal only two end neither by themselves nor with their input: watch, and
// Vim, which then reads keys from its standard error. Editors such as nano and nvim, pagers, top, prompts for
// passwords and the shells of languages find no terminal or the end of /dev/null, and git an editor that fails.

// needsTerminal returns the program of a command that would wait for keys that never arrive: an editor with files but
// no commands, or watch, which runs until it is stopped. Input that is piped or redirected into the program may be
// its keys.
func needsTerminal(command guard.Exec) string {
	statements, err := command.Statements()
	if err != nil {
		return ""
	}
	own := false
	eachNode(statements, func(n syntax.Node) bool {
		_, decl := n.(*syntax.FuncDecl)
		own = own || decl // perhaps of that name
		return !own
	})
	if own {
		return ""
	}
	return waitingAmong(statements)
}

// waitsMessage says that a command was not run, and what to do instead.
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

// waitingAmong looks through what a line runs in turn, as far as a program there is surely meant by its name.
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

// waitingPiped looks at both ends of a pipe: watch ends when its output is not read.
func waitingPiped(c *syntax.BinaryCmd) string {
	if name := waitingAmong([]*syntax.Stmt{c.X}); name != "" && name != "watch" {
		return name
	}
	if call, ok := c.Y.Cmd.(*syntax.CallExpr); ok && !slices.ContainsFunc(c.Y.Redirs, isInput) {
		return waitingCall(call, true)
	}
	return ""
}

// waitingCall is the program of a simple command, if that waits although something may be piped into it.
func waitingCall(c *syntax.CallExpr, piped bool) string {
	words := make([]string, len(c.Args))
	for i, arg := range c.Args {
		words[i] = wordText(arg) // "" if that is known only when it runs: a file, most likely
	}
	words, fed := unwrapped(words)
	if len(words) == 0 {
		return ""
	}
	name := path.Base(words[0])
	if words[0] != name && words[0] != "/bin/"+name && words[0] != "/usr/bin/"+name { // one of the workspace, such as ./watch
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

// unwrapped takes off what runs the command that follows it, and reports whether that has an input of its own for it.
func unwrapped(words []string) (bare []string, fed bool) {
	for len(words) > 1 && runsDetached(words[0]) {
		fed = fed || words[0] == "xargs"
		own := words[0] != "command" // whose options ask what it would run
		words = words[1:]
		for own && len(words) > 0 && ofWrapper.MatchString(words[0]) {
			words = words[1:]
		}
	}
	return words, fed
}

// runsDetached reports whether a program runs the one that follows it, for as long as that takes.
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

	// editorOption is an option or command of Vim that leaves it to wait: how windows open, what may be changed, and
	// where to begin.
	editorOption = regexp.MustCompile(`^(-[RMmbdnNZ]+|-[oOp][0-9]*|--clean|--noplugin|--|\+[0-9]*|\+/.*)$`)
	// watchOption is an option of watch that does not end it.
	watchOption = regexp.MustCompile(`^(-[bcCdptwx]*(n[0-9.]*)?|--(differences|interval|no-title|color|exec|beep|precise)(=.*)?)$`)
)

// knownProgram reports whether an argument may tell an editor what to do, so that it ends.
func knownProgram(arg string) bool {
	return arg != "" && arg != "-" && (arg[0] == '-' || arg[0] == '+') && !editorOption.MatchString(arg)
}

// watchEnds reports whether watch may end with these arguments, or has nothing to run.
func watchEnds(args []string) bool {
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "" || arg[0] != '-':
			return false
		case !watchOption.MatchString(arg):
			return true
		case strings.HasSuffix(arg, "n") && arg[1] != '-' || arg == "--interval":
			i++ // its value
		}
	}
	return true
}

// terminalHint says what to do about a program that needs a person at a terminal, by what it wrote.
func terminalHint(r *shell.Result) string {
	switch {
	case r.TimedOut:
		return ttyHint(r.Text)
	case r.ExitCode != 0 && strings.Contains(r.Text, "problem with the editor 'false'"): // as git says
		return "There is no editor here: give messages with -m or -F, keep prepared ones with GIT_EDITOR=true, and change the steps of a rebase with a command, as in GIT_SEQUENCE_EDITOR=\"sed -i s/^pick/edit/\"."
	}
	return ""
}

// ttyHint is the hint for what still runs, or has run until its time was over.
func ttyHint(said string) string {
	if strings.Contains(said, "Vim: Warning: Input is not from a terminal") {
		return "Vim waits for keys, and there is no terminal to press any: use Read, Edit and Write for files, or vim -es -c COMMAND -c wq FILE."
	}
	return ""
}
