package command

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A Place is a directory that a command may run in: the operands of cd before it,
// one after another, from the directory the text starts in.
type Place []Word

// maxPlaces bounds the places of one command; beyond, they are not distinguished.
const maxPlaces = 8

// A cwdTracker finds where the statements of a text run: what `cd a && rm b` removes
// is in a, since rm does not run unless cd succeeds; in `cd a; rm b` it may be in
// either directory. Changes it does not understand (pushd, a cd in a loop or a
// function) make the directory unknown.
type cwdTracker struct {
	w       *walker
	at      map[*syntax.Stmt][]Place
	moves   int // changes of directory that were followed
	unknown bool
}

// locate stores in w.at the places of each statement of a text.
func (w *walker) locate(stmts []*syntax.Stmt) {
	if w.start == nil || !strings.Contains(w.text, "cd") {
		return
	}
	t := cwdTracker{w: w, at: map[*syntax.Stmt][]Place{}}
	t.list(stmts, w.start)
	w.at = t.at
	w.out.lost = w.out.lost || t.unknown
	if !w.sameShell {
		w.out.followed += t.moves
	}
}

// list returns where the shell is after a list of statements: ok if the list succeeds, failed if it fails.
func (t *cwdTracker) list(stmts []*syntax.Stmt, in []Place) (ok, failed []Place) {
	ok, failed = in, in
	for _, s := range stmts {
		ok, failed = t.stmt(s, in)
		in = orElse(t.union(ok, failed), in)
	}
	return ok, failed
}

func (t *cwdTracker) stmt(s *syntax.Stmt, in []Place) (ok, failed []Place) {
	t.at[s] = in
	for _, r := range s.Redirs {
		t.nested(r, in)
	}
	ok, failed = t.command(s.Cmd, in)
	if len(s.Redirs) > 0 { // a redirection that fails keeps the command from running
		failed = t.union(failed, in)
	}
	switch {
	case s.Background || s.Coprocess || s.Disown:
		return in, in
	case s.Negated:
		return failed, ok
	}
	return ok, failed
}

func (t *cwdTracker) command(c syntax.Command, in []Place) (ok, failed []Place) {
	switch c := c.(type) {
	case *syntax.CallExpr:
		t.nested(c, in)
		return t.call(c, in)
	case *syntax.Block:
		return t.list(c.Stmts, in)
	case *syntax.Subshell:
		t.list(c.Stmts, in)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			return t.stmt(c.Stmt, in)
		}
	case *syntax.IfClause:
		return t.branch(c, in)
	case *syntax.BinaryCmd:
		return t.binary(c, in)
	case nil:
	default:
		_, function := c.(*syntax.FuncDecl)
		before := t.moves
		t.nested(c, in)
		t.unknown = t.unknown || function || t.moves != before
	}
	return in, in
}

func (t *cwdTracker) binary(c *syntax.BinaryCmd, in []Place) (ok, failed []Place) {
	ok, failed = t.stmt(c.X, in)
	switch c.Op {
	case syntax.AndStmt:
		then, otherwise := t.stmt(c.Y, orElse(ok, in))
		return then, t.union(failed, otherwise)
	case syntax.OrStmt:
		then, otherwise := t.stmt(c.Y, orElse(failed, in))
		return t.union(ok, then), otherwise
	}
	ok, failed = t.stmt(c.Y, in) // the shell itself may run the last command of a pipe (lastpipe)
	return t.union(in, ok), t.union(in, failed)
}

func (t *cwdTracker) branch(c *syntax.IfClause, in []Place) (ok, failed []Place) {
	switch {
	case c == nil:
		return in, in
	case len(c.Cond) == 0: // a plain else
		return t.list(c.Then, in)
	}
	then, otherwise := t.list(c.Cond, in)
	ok, failed = t.list(c.Then, orElse(then, in))
	then, otherwise = t.branch(c.Else, orElse(otherwise, in))
	return t.union(ok, then), t.union(failed, otherwise)
}

// call returns where the shell is after a simple command. It follows `cd DIR`, and returns no places for `exit`,
// after which nothing runs.
func (t *cwdTracker) call(c *syntax.CallExpr, in []Place) (ok, failed []Place) {
	if len(c.Args) == 0 {
		return in, in
	}
	var words []Word
	for _, arg := range c.Args {
		if openBraces(arg) > 0 {
			return in, in
		}
		words = append(words, t.w.word(arg))
	}
	switch {
	case len(words) <= 2 && words[0].Static && words[0].Text == "exit" && (len(words) == 1 || words[1].Static && strings.Trim(words[1].Text, "0123456789") == ""):
		return nil, nil
	case !words[0].Static || words[0].Text != "cd":
		return in, in
	}
	if len(words) > 1 && words[1].Static && words[1].Text == "--" {
		words = words[1:]
	}
	to := Word{Text: "~", Static: true, Home: true}
	if len(words) == 2 {
		to = words[1]
	}
	if len(words) > 2 || !to.Static && !to.Home || to.Text == "" || to.Text[0] == '-' {
		t.unknown = true
		return in, in
	}
	t.moves++
	for _, place := range in {
		ok = append(ok, append(place[:len(place):len(place)], to))
	}
	return ok, in
}

// nested follows the statements inside a node: those of substitutions, loops and the like. They all start where the
// node does.
func (t *cwdTracker) nested(n syntax.Node, in []Place) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			t.list(n.Stmts, in)
		case *syntax.ProcSubst:
			t.list(n.Stmts, in)
		case *syntax.Stmt:
			t.stmt(n, in)
		default:
			return true
		}
		return false
	})
}

// orElse returns places, or in where there are none: better to judge a command that
// cannot run than to miss one that can.
func orElse(places, in []Place) []Place {
	if len(places) == 0 {
		return in
	}
	return places
}

func (t *cwdTracker) union(a, b []Place) []Place {
	out := a
	for _, place := range b {
		if !slices.ContainsFunc(a, func(other Place) bool { return other.Key() == place.Key() }) {
			out = append(out[:len(out):len(out)], place)
		}
	}
	if len(out) > maxPlaces {
		t.unknown = true
		return a
	}
	return out
}

// Key returns a text that identifies the place.
func (p Place) Key() string {
	var b strings.Builder
	for _, word := range p {
		if word.Home {
			b.WriteByte('~')
		}
		b.WriteString(word.Text)
		b.WriteByte(0)
	}
	return b.String()
}
