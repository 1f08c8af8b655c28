package command

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// look finds what a text gives its variables: those that hold nothing but numbers, so that
// arithmetic with them runs nothing (i=0; while …; do i=$((i+1)); done), and those of
// which it is known what they hold, see bindings. A value that a variable has before the
// text begins is none of the caller's making.
//
// It finds nothing where a variable may be set in a way that is not seen here: by
// text that is evaluated, by a trap, by a program that is not known. As numbers only names
// in lower case count, since bash sets others by itself (PWD, REPLY, OPTARG).
func (w *walker) look(stmts []*syntax.Stmt) {
	counts := strings.ContainsAny(w.text, "([") || strings.Contains(w.text, "let ") || strings.Contains(w.text, "${")
	binds := strings.Contains(w.text, "$") && (strings.Contains(w.text, "=") || strings.Contains(w.text, "for "))
	if w.depth > 0 || !counts && !binds {
		return
	}
	s := survey{walker: w, number: map[string]bool{}, sets: map[string]int{}, by: map[string]syntax.Node{}}
	for _, stmt := range stmts {
		syntax.Walk(stmt, s.visit)
	}
	if s.blind || !s.callsKnown() {
		return
	}
	if counts {
		w.number = s.numbers()
	}
	if binds {
		w.bind(stmts, &s)
	}
}

// A survey collects which variables are set to what.
type survey struct {
	*walker
	number map[string]bool        // false: also set to something else
	sets   map[string]int         // how often
	by     map[string]syntax.Node // the last assignment or loop that does
	calls  []string               // variables that name a program
	own    bool                   // a variable of bash's own that holds a number is read
	blind  bool
}

// set notes that a variable is set.
func (s *survey) set(name string, toNumber bool) {
	lower := name != "" && 'a' <= name[0] && name[0] <= 'z' && strings.ToLower(name) == name
	before, known := s.number[name]
	s.number[name] = lower && toNumber && (before || !known)
	s.sets[name]++
}

// callsKnown reports whether the variables that name programs name none that sets variables.
func (s *survey) callsKnown() bool {
	for _, name := range s.calls {
		if s.sets[name] != 1 {
			return false
		}
		var values []Word
		switch by := s.by[name].(type) {
		case *syntax.Assign:
			values = append(values, Word{Text: s.value(by), Static: s.value(by) != "$"})
		case *syntax.WordIter:
			values = s.words(by.Items)
		}
		for _, value := range values {
			first, _, _ := strings.Cut(value.Text, " ")
			if !value.Static || first == "" || oneOf(first, setters+" printf read unset") {
				return false
			}
		}
		if len(values) == 0 {
			return false
		}
	}
	return true
}

// ownNumbers are variables that bash makes numbers, as long as nothing else is made of them.
const ownNumbers = "RANDOM SECONDS EPOCHSECONDS SRANDOM LINENO BASHPID UID EUID PPID"

// numbers returns the variables that hold numbers only.
func (s *survey) numbers() map[string]bool {
	for name := range strings.SplitSeq(ownNumbers, " ") {
		if s.sets[name] == 0 {
			s.number[name] = true
		} else if s.own {
			return nil
		}
	}
	return s.number
}

func (s *survey) visit(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.Assign:
		if n.Name == nil { // declare "x=y"
			word := s.word(n.Value)
			s.blind = s.blind || !word.Static || !strings.HasPrefix(word.Text, "-") || strings.Contains(word.Text, "n")
			return true
		}
		s.set(n.Name.Value, n.Naked || s.isNumeric(n))
		s.by[n.Name.Value] = n
	case *syntax.BinaryArithm:
		op := n.Op.String()
		if x, ok := n.X.(*syntax.Word); ok && n.Op == syntax.Assgn {
			s.set(x.Lit(), true)
		} else if ok && strings.HasSuffix(op, "=") && !oneOf(op, "== != <= >=") {
			s.sets[x.Lit()]++
		}
	case *syntax.UnaryArithm:
		if x, ok := n.X.(*syntax.Word); ok && (n.Op == syntax.Inc || n.Op == syntax.Dec) {
			s.sets[x.Lit()]++
		}
	case *syntax.WordIter:
		good := len(n.Items) > 0
		for _, item := range n.Items {
			good = good && (isCount(item.Lit()) || s.printsNumbers(item) || s.isKey(item))
		}
		s.set(n.Name.Value, good)
		s.by[n.Name.Value] = n
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
		case *syntax.CmdSubst:
			return s.printsNumber(p)
		case *syntax.ParamExp:
			own := plainExpansion(p) && p.Param != nil && oneOf(p.Param.Value, ownNumbers)
			s.own = s.own || own
			return own || numeric(p)
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

// setters are commands that set variables in ways that are not followed.
const setters = "eval source . trap builtin command mapfile readarray getopts wait let declare typeset local export readonly nameref compgen complete coproc"

// call looks for commands that set variables.
func (s *survey) call(call *syntax.CallExpr) {
	if len(call.Args) == 0 {
		return
	}
	args := s.words(call.Args)
	switch {
	case len(args) == 0:
		s.blind = true
		return
	case !args[0].Static && args[0].name != "":
		s.calls = append(s.calls, args[0].name)
		return
	case !args[0].Static, oneOf(args[0].Text, setters):
		s.blind = s.blind || args[0].Text != "command" || len(args) < 2 || args[1].Text != "-v"
		return
	}
	switch args[0].Text {
	case "unset":
		for _, arg := range args[1:] {
			s.blind = s.blind || !arg.Static
			s.sets[arg.Text] += 2
		}
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
	return p.Param != nil && plainExpansion(p) && w.number[p.Param.Value]
}

// isKey reports whether a word is the list of the indices of an array: "${!a[@]}", if no
// array has names for them.
func (s *survey) isKey(word *syntax.Word) bool {
	if len(word.Parts) != 1 || strings.Contains(s.text, "-A") {
		return false
	}
	q, ok := word.Parts[0].(*syntax.DblQuoted)
	if !ok || len(q.Parts) != 1 {
		return false
	}
	p, ok := q.Parts[0].(*syntax.ParamExp)
	return ok && p.Excl && p.Names == 0 && p.Exp == nil && p.Slice == nil && p.Repl == nil && isListIndex(p.Index)
}

// printsNumbers reports whether a word is $(…) alone that prints numbers.
func (w *walker) printsNumbers(word *syntax.Word) bool {
	if len(word.Parts) != 1 {
		return false
	}
	subst, ok := word.Parts[0].(*syntax.CmdSubst)
	return ok && w.printsNumber(subst)
}

// printsNumber reports whether a substitution is replaced by nothing but numbers: $(date +%s).
func (w *walker) printsNumber(subst *syntax.CmdSubst) bool {
	return !subst.TempFile && !subst.ReplyVar && len(subst.Stmts) == 1 && w.countsIn(subst.Stmts[0])
}

// countsIn reports whether a statement prints nothing but numbers. What it says on its
// stderr is not what counts.
func (w *walker) countsIn(s *syntax.Stmt) bool {
	for _, r := range s.Redirs {
		if r.Op != syntax.RdrIn && (r.Op != syntax.RdrOut || r.N == nil || r.N.Value != "2") {
			return false
		}
	}
	switch cmd := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		return cmd.Op == syntax.Pipe && w.countsIn(cmd.Y) || cmd.Op == syntax.OrStmt && w.countsIn(cmd.X) && w.countsIn(cmd.Y)
	case *syntax.CallExpr:
		words := w.words(cmd.Args)
		if len(cmd.Assigns) > 0 || len(words) == 0 {
			return false
		}
		for _, word := range words {
			if !word.Static {
				return false
			}
		}
		_, defined := w.funcs[words[0].Text]
		return !defined && counters().MatchString(join(words)+" ")
	}
	return false
}

// counters matches the commands that print numbers whatever they read.
var counters = regular(`^(wc( -[clmwL]+)+|date( -u)?( \+(%[sNYmdHMSju])+)|nproc( -\S+)*|seq( -?[0-9.]+)+|grep -[ivwxEFs]*c[ivwxEFs]*( [^\s-]\S*){1,2}|id -[ug]|git rev-list --count [\w./^~]+|(echo|printf) [0-9]+) $`)
