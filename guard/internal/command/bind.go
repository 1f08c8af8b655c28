package command

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// What a text surely gives a variable is as good as written out: F=main.go; sed -n 1p $F.
// That is so where nothing else in the text sets the variable, and the assignment stands
// where it surely runs first, or the loop around what uses it. Other values that a text
// names are guesses, see guess.

// maxUnrolled bounds how many commands of loops are looked at for each item.
const maxUnrolled = 200

// bindings are the variables whose values are known where they stand.
type bindings struct {
	sole     map[string]syntax.Node // what sets a variable: an assignment or the items of a loop, if nothing else does
	sure     map[*syntax.Stmt]bool  // assignments that surely run
	values   map[string]string      // what holds at the place that is looked at
	listed   map[string]bool        // variables of loops there, none of whose values is an option
	splits   bool                   // IFS may be another
	unrolled int
}

// bindable reports whether a variable holds what it is given: bash sets others by itself, or
// takes them for orders.
func bindable(name string) bool {
	return name != "_" && !strings.HasPrefix(name, "BASH") && !evaluates(name) && !steers(name) &&
		!oneOf(name, "UID EUID PPID GROUPS DIRSTACK FUNCNAME SHELLOPTS PWD OLDPWD REPLY OPTARG OPTERR PIPESTATUS COLUMNS LINES MAPFILE COPROC EPOCHREALTIME IFS PATH HOME SHLVL HOSTNAME")
}

// literal reports whether a value is nothing that the shell takes for more than text.
func literal(value string) bool {
	return strings.Trim(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+,- ") == ""
}

// bind notes which variables have one setter alone, as the survey found them.
func (w *walker) bind(stmts []*syntax.Stmt, s *survey) {
	w.known = bindings{sole: map[string]syntax.Node{}, sure: map[*syntax.Stmt]bool{}, values: map[string]string{}, listed: map[string]bool{}, splits: s.sets["IFS"] > 0}
	for name, by := range s.by {
		if s.sets[name] == 1 && bindable(name) {
			w.known.sole[name] = by
		}
	}
	for _, stmt := range stmts {
		w.surely(stmt)
	}
}

// surely notes the assignments of a statement that run whenever it does, and reports
// whether it is such ones that cannot fail.
func (w *walker) surely(stmt *syntax.Stmt) bool {
	if stmt.Background || stmt.Coprocess || stmt.Negated || len(stmt.Redirs) > 0 {
		return false
	}
	switch cmd := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		if len(cmd.Args) == 0 {
			w.known.sure[stmt] = true
		}
		return len(cmd.Args) == 0 && !strings.ContainsAny(w.source(cmd), "(`")
	case *syntax.BinaryCmd:
		return cmd.Op == syntax.AndStmt && w.surely(cmd.X) && w.surely(cmd.Y)
	}
	return false
}

// assign notes what a statement of assignments gives its variables.
func (w *walker) assign(s *syntax.Stmt, a *syntax.Assign) {
	if !w.known.sure[s] || w.known.sole[a.Name.Value] != a || a.Append {
		return
	}
	if value := w.value(a); value != "" && literal(value) {
		w.known.values[a.Name.Value] = value
	}
}

// loop looks at the body of a loop for each of its items where they are known, and reports
// whether it did not. What changes directory is looked at once: see locate.
func (w *walker) loop(n *syntax.ForClause) (once bool) {
	iter, ok := n.Loop.(*syntax.WordIter)
	if !ok || n.Select || len(iter.Items) == 0 || w.known.sole[iter.Name.Value] != iter {
		return true
	}
	items, name := w.words(iter.Items), iter.Name.Value
	calls, listed := callsIn(n.Do), true
	unroll := calls > 0 && len(items) > 0 && w.known.unrolled+calls*len(items) <= maxUnrolled
	for _, item := range items {
		unroll = unroll && item.Static && !item.Home && item.Text != "" && literal(item.Text)
		listed = listed && !item.mayBeOption()
	}
	syntax.Walk(n.Loop, w.visit)
	if !unroll {
		w.known.listed[name] = listed
		w.body(n)
		delete(w.known.listed, name)
		return false
	}
	w.known.unrolled += calls * len(items)
	for _, item := range items {
		w.known.values[name] = item.Text
		w.body(n)
	}
	delete(w.known.values, name)
	return false
}

func (w *walker) body(n *syntax.ForClause) {
	for _, stmt := range n.Do {
		syntax.Walk(stmt, w.visit)
	}
}

// callsIn counts the commands in the body of a loop; 0 if one may change the directory.
func callsIn(stmts []*syntax.Stmt) (calls int) {
	still := true
	for _, stmt := range stmts {
		syntax.Walk(stmt, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.CallExpr:
				calls++
				still = still && len(n.Args) > 0 && !oneOf(n.Args[0].Lit(), "cd pushd popd builtin command eval")
			case *syntax.FuncDecl:
				still = false
			}
			return still
		})
	}
	if !still {
		return 0
	}
	return calls
}

// bound returns a word with the values of variables in their place, as far as they are known.
func (w *walker) bound(arg *syntax.Word) *syntax.Word {
	if len(w.known.values) == 0 {
		return arg
	}
	parts := slices.Clone(arg.Parts)
	for i, part := range parts {
		switch part := part.(type) {
		case *syntax.ParamExp:
			if value := w.known.value(part); value != "" && !strings.Contains(value, " ") && !w.known.splits {
				parts[i] = &syntax.Lit{Value: value}
			}
		case *syntax.DblQuoted:
			inner := slices.Clone(part.Parts)
			for k, q := range inner {
				if p, ok := q.(*syntax.ParamExp); ok && w.known.value(p) != "" {
					inner[k] = &syntax.Lit{Value: w.known.value(p)}
				}
			}
			parts[i] = &syntax.DblQuoted{Dollar: part.Dollar, Parts: inner}
		}
	}
	return &syntax.Word{Parts: parts}
}

// value returns what a plain expansion stands for, "" if that is not known.
func (b *bindings) value(p *syntax.ParamExp) string {
	if p.Param == nil || !plainExpansion(p) {
		return ""
	}
	return b.values[p.Param.Value]
}

// fields returns the words that an unquoted variable becomes whose value has several.
func (w *walker) fields(arg *syntax.Word) (words []Word) {
	if len(w.known.values) == 0 || len(arg.Parts) != 1 || w.known.splits {
		return nil
	}
	p, ok := arg.Parts[0].(*syntax.ParamExp)
	if !ok || !strings.Contains(w.known.value(p), " ") {
		return nil
	}
	for _, field := range strings.Fields(w.known.value(p)) {
		words = append(words, Word{Text: field, Static: true, single: true})
	}
	return words
}
