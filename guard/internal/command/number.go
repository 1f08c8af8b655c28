package command

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// numbers finds the variables of a text that hold nothing but numbers, so that
// arithmetic with them runs nothing: i=0; while …; do i=$((i+1)); done. A value
// that a variable has before the text begins is none of the caller's making.
//
// It returns nil where a variable may be set in a way that is not seen here: by
// text that is evaluated, by a trap, by a program that is not known. Only names in
// lower case count, since bash sets others by itself (PWD, REPLY, OPTARG).
func (w *walker) numbers(stmts []*syntax.Stmt) map[string]bool {
	if w.depth > 0 || !strings.ContainsAny(w.text, "([") {
		return nil
	}
	s := survey{walker: w, number: map[string]bool{}}
	for _, stmt := range stmts {
		syntax.Walk(stmt, s.visit)
	}
	if s.blind {
		return nil
	}
	return s.number
}

// A survey collects which variables are set to what.
type survey struct {
	*walker
	number map[string]bool // false: also set to something else
	blind  bool
}

// set notes that a variable is set.
func (s *survey) set(name string, toNumber bool) {
	lower := name != "" && 'a' <= name[0] && name[0] <= 'z' && strings.ToLower(name) == name
	before, known := s.number[name]
	s.number[name] = lower && toNumber && (before || !known)
}

func (s *survey) visit(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.Assign:
		if n.Name != nil {
			s.set(n.Name.Value, n.Naked || s.isNumeric(n))
		}
	case *syntax.BinaryArithm:
		if x, ok := n.X.(*syntax.Word); ok && n.Op == syntax.Assgn {
			s.set(x.Lit(), true)
		}
	case *syntax.WordIter:
		good := len(n.Items) > 0
		for _, item := range n.Items {
			good = good && isCount(item.Lit())
		}
		s.set(n.Name.Value, good)
	case *syntax.ParamExp:
		if n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) && n.Param != nil {
			s.set(n.Param.Value, false)
		}
	case *syntax.Redirect:
		if n.N != nil && strings.HasPrefix(n.N.Value, "{") {
			s.set(strings.Trim(n.N.Value, "{}"), false)
		}
	case *syntax.CoprocClause:
		s.blind = true
	case *syntax.CallExpr:
		s.call(n)
	}
	return true
}

// isNumeric reports whether what is assigned is a number.
func (s *survey) isNumeric(a *syntax.Assign) bool {
	if a.Array != nil || a.Index != nil {
		return false
	}
	if a.Value == nil {
		return true
	}
	parts := a.Value.Parts
	if len(parts) == 1 {
		if q, ok := parts[0].(*syntax.DblQuoted); ok && !q.Dollar {
			parts = q.Parts
		}
	}
	if len(parts) == 1 {
		switch p := parts[0].(type) {
		case *syntax.ArithmExp:
			return true
		case *syntax.ParamExp:
			return numeric(p)
		}
	}
	v := s.word(a.Value)
	return v.Static && !v.Home && strings.Trim(v.Text, "0123456789") == ""
}

// isCount reports whether an item of a loop is a number or a range of numbers.
func isCount(item string) bool {
	inner, opened := strings.CutPrefix(item, "{")
	if opened {
		var closed bool
		if inner, closed = strings.CutSuffix(inner, "}"); !closed {
			return false
		}
	}
	return inner != "" && strings.Trim(inner, "0123456789.") == ""
}

// call looks for commands that set variables.
func (s *survey) call(call *syntax.CallExpr) {
	if len(call.Args) == 0 {
		return
	}
	args := s.words(call.Args)
	if len(args) == 0 || !args[0].Static {
		s.blind = true
		return
	}
	switch args[0].Text {
	case "eval", "source", ".", "trap", "builtin", "command", "mapfile", "readarray", "getopts", "wait", "let",
		"declare", "typeset", "local", "export", "readonly", "nameref":
		s.blind = true
	case "printf":
		s.blind = s.blind || len(args) > 1 && (!args[1].Static || strings.HasPrefix(args[1].Text, "-"))
	case "read":
		for _, arg := range args[1:] {
			option := strings.HasPrefix(arg.Text, "-")
			s.blind = s.blind || !arg.Static || option && strings.Contains(arg.Text, "a") // -aNAME
			s.set(arg.Text, false)
		}
	}
}

// holdsNumber reports whether an expansion is that of a variable that holds
// nothing but numbers.
func (w *walker) holdsNumber(p *syntax.ParamExp) bool {
	return p.Param != nil && p.Index == nil && p.Exp == nil && p.Slice == nil && p.Repl == nil && !p.Excl && p.Names == 0 && w.number[p.Param.Value]
}
