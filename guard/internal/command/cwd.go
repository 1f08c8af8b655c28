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
// either directory. It follows lists, blocks and subshells. A change of directory
// anywhere else makes the directory unknown.
type cwdTracker struct {
	w     *walker
	at    map[*syntax.Stmt][]Place
	moves int // changes of directory that were followed
}

// locate prepares the places of the statements of a text. A statement that is not
// among them runs where the one around it does.
func (w *walker) locate(stmts []*syntax.Stmt) {
	if w.start == nil || !strings.Contains(w.text, "cd") {
		return
	}
	w.out.lost = w.out.lost || len(w.funcs) > 0 // which may be called from anywhere
	t := cwdTracker{w: w, at: map[*syntax.Stmt][]Place{}}
	t.list(stmts, w.start)
	w.at = t.at
	if !w.sameShell {
		w.out.followed += t.moves
	}
}

// list returns where the shell is after a list whose last statement succeeds, and in any case.
func (t *cwdTracker) list(stmts []*syntax.Stmt, in []Place) (ok, all []Place) {
	ok, all = in, in
	for _, s := range stmts {
		ok, all = t.stmt(s, all)
	}
	return ok, all
}

func (t *cwdTracker) stmt(s *syntax.Stmt, in []Place) (ok, all []Place) {
	t.at[s] = in
	for _, r := range s.Redirs { // whose substitutions run before the command
		syntax.Walk(r, func(n syntax.Node) bool {
			if nested, ok := n.(*syntax.Stmt); ok {
				t.at[nested] = in
			}
			return true
		})
	}
	ok, all = in, in
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		if to, moves := t.cd(c); moves {
			t.moves++
			ok = nil
			for _, place := range in {
				ok = append(ok, append(place[:len(place):len(place)], to))
			}
			all = t.union(ok, in)
		}
	case *syntax.BinaryCmd:
		ok, all = t.binary(c, in)
	case *syntax.Block:
		ok, all = t.list(c.Stmts, in)
	case *syntax.Subshell:
		t.list(c.Stmts, in)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			ok, all = t.stmt(c.Stmt, in)
		}
	}
	switch {
	case s.Background || s.Coprocess || s.Disown:
		return in, in
	case s.Negated:
		return all, all
	}
	if len(s.Redirs) > 0 { // one that fails keeps the command from running
		all = t.union(all, in)
	}
	return ok, all
}

func (t *cwdTracker) binary(c *syntax.BinaryCmd, in []Place) (ok, all []Place) {
	ok, all = t.stmt(c.X, in)
	switch c.Op {
	case syntax.AndStmt:
		then, otherwise := t.stmt(c.Y, ok)
		return then, t.union(all, otherwise)
	case syntax.OrStmt:
		if call, isCall := callOf(c.Y); isCall && ends(call) {
			t.at[c.Y] = all
			return ok, ok
		}
		_, otherwise := t.stmt(c.Y, all)
		all = t.union(all, otherwise)
		return all, all
	}
	_, last := t.stmt(c.Y, in) // of a pipe the last command may be the shell itself (lastpipe)
	all = t.union(t.union(all, last), in)
	return all, all
}

// ends reports whether a call is that of exit with at most a number: with more words bash goes on.
func ends(c *syntax.CallExpr) bool {
	return len(c.Args) > 0 && len(c.Args) <= 2 && c.Args[0].Lit() == "exit" &&
		(len(c.Args) == 1 || c.Args[1].Lit() != "" && strings.Trim(c.Args[1].Lit(), "0123456789") == "")
}

// cd returns where a call of cd leads, if its words surely say that.
func (t *cwdTracker) cd(c *syntax.CallExpr) (to Word, ok bool) {
	if len(c.Args) == 0 || len(c.Args) > 3 || c.Args[0].Lit() != "cd" {
		return Word{}, false
	}
	words := t.w.words(c.Args[1:])
	if len(words) > 0 && words[0].Static && words[0].Text == "--" {
		words = words[1:]
	}
	to = Word{Text: "~", Static: true, Home: true}
	if len(words) > 0 {
		to = words[0]
	}
	return to, len(words) < 2 && (to.Static || to.Home) && to.Text != "" && to.Text[0] != '-'
}

func (t *cwdTracker) union(a, b []Place) []Place {
	out := a
	for _, place := range b {
		if !slices.ContainsFunc(a, func(other Place) bool { return other.Key() == place.Key() }) {
			out = append(out[:len(out):len(out)], place)
		}
	}
	if len(out) > maxPlaces {
		t.w.out.lost = true
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
