package command

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Steps are the commands that a shell comes to when it runs a text, for what a result says of them. Those of functions
// and substitutions are left out.
type Steps struct {
	All []Step
	// Silenced says that error messages are redirected, and Pipefail and ErrExit that the text sets these options.
	Silenced, Pipefail, ErrExit bool
	// Functions says that the text declares functions, so that a name may mean another program.
	Functions bool
}

// A Step is one of them.
type Step struct {
	// Words are the program and its arguments, "" for what is not known before they run. "!", "[[" and "((" stand for
	// a negated command, a test and arithmetic.
	Words []string
	// Last says that it may set the exit code of the text.
	Last bool
	// Piped says that it reads a pipe, and Writes that it writes one.
	Piped, Writes bool
	// Given says that it has another input than that of the text, or that the text does not wait for it.
	Given bool
}

// Steps returns the commands that a shell comes to, and an error if the text was not read whole.
func (a *Analysis) Steps() (Steps, error) {
	l := &stepList{}
	for _, c := range a.Commands {
		for _, w := range c.Args {
			set, cluster := c.Name == "set", isOption(w.Text) && strings.Contains(w.Text, "e")
			l.Pipefail = l.Pipefail || set && w.Text == "pipefail"
			l.ErrExit = l.ErrExit || set && (w.Text == "errexit" || cluster)
		}
	}
	each(a.statements, func(n syntax.Node) {
		switch n := n.(type) {
		case *syntax.FuncDecl:
			l.Functions = true
		case *syntax.Redirect:
			l.Silenced = l.Silenced || n.Op == syntax.RdrAll || n.Op == syntax.AppAll ||
				n.N != nil && n.N.Value == "2" && n.Op != syntax.DplOut
		}
	})
	l.list(a.statements, Step{Last: true})
	return l.Steps, a.err
}

// Words returns the words of a text that is one command of literal words, and nothing else; nil for any other.
func (a *Analysis) Words() (words []string) {
	if len(a.statements) != 1 || len(a.Commands) != 1 || len(a.Undecidable) > 0 || a.err != nil {
		return nil
	}
	s := a.statements[0]
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || s.Negated || s.Background || s.Coprocess || len(s.Redirs)+len(call.Assigns) > 0 {
		return nil
	}
	for _, w := range a.Commands[0].Args {
		if !w.Static || w.Home {
			return nil
		}
		words = append(words, w.Text)
	}
	return words
}

type stepList struct{ Steps }

func (l *stepList) add(at Step, words ...string) {
	at.Words = words
	l.All = append(l.All, at)
}

// list adds the steps of a list, whose last statement sets the exit code. at is what is known of all of them.
func (l *stepList) list(list []*syntax.Stmt, at Step) {
	for i, s := range list {
		one := at
		one.Last = at.Last && i == len(list)-1
		l.stmt(s, one)
	}
}

func (l *stepList) stmt(s *syntax.Stmt, at Step) {
	if s.Background || s.Coprocess {
		return // the exit code is 0
	}
	if s.Negated && at.Last {
		at.Last = false
		l.add(Step{Last: true, Given: true}, "!")
	}
	input := func(r *syntax.Redirect) bool { return strings.HasPrefix(r.Op.String(), "<") }
	at.Given = at.Given || slices.ContainsFunc(s.Redirs, input)
	if call, ok := s.Cmd.(*syntax.CallExpr); ok {
		l.call(call, at)
		return
	}
	at.Given, at.Piped = at.Given || at.Piped, false // it may have read the pipe before
	before := at
	before.Last = false
	switch c := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		pipe := c.Op == syntax.Pipe || c.Op == syntax.PipeAll
		before.Writes, before.Last = at.Writes || pipe, at.Last && (c.Op == syntax.AndStmt || pipe && l.Pipefail)
		l.stmt(c.X, before)
		at.Piped = pipe
		l.stmt(c.Y, at)
	case *syntax.Subshell:
		l.list(c.Stmts, at)
	case *syntax.Block:
		l.list(c.Stmts, at)
	case *syntax.IfClause:
		for ; c != nil; c = c.Else {
			l.list(c.Cond, before)
			l.list(c.Then, at)
		}
	case *syntax.ForClause:
		l.list(c.Do, at)
	case *syntax.WhileClause:
		l.list(c.Cond, before)
		l.list(c.Do, at)
	case *syntax.CaseClause:
		for _, item := range c.Items {
			l.list(item.Stmts, at)
		}
	case *syntax.TimeClause:
		if c.Stmt != nil {
			l.stmt(c.Stmt, at)
		}
	case *syntax.TestClause:
		l.add(at, "[[")
	case *syntax.ArithmCmd, *syntax.LetClause:
		l.add(at, "((")
	case *syntax.FuncDecl, *syntax.DeclClause, nil: // the exit code is 0
	default:
		l.add(at, "")
	}
}

// call adds a simple command. The last substitution sets the exit code of a command that only assigns.
func (l *stepList) call(c *syntax.CallExpr, at Step) {
	var words []string
	w := walker{out: &Analysis{}}
	for _, word := range w.words(c.Args) {
		text := word.Text
		if !word.Static && !word.Home && !word.Glob {
			text = ""
		}
		words = append(words, text)
	}
	if len(words) > 0 {
		l.add(at, words...)
		return
	}
	var last *syntax.CmdSubst
	for _, assign := range c.Assigns {
		syntax.Walk(assign, func(n syntax.Node) bool {
			sub, ok := n.(*syntax.CmdSubst)
			if ok {
				last = sub
			}
			return !ok
		})
	}
	if last != nil && at.Last {
		at.Given = true
		l.list(last.Stmts, at)
	}
}
