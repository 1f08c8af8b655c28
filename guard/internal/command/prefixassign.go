package command

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// setsVariable judges an assignment that lasts: value is its text, or "$" where
// that is not known.
func (w *walker) setsVariable(name, value string) {
	switch {
	case keepsPath(name, value):
	case steers(name) && !harmlessValue(name, value):
		w.undecided(true, setsPrefix+name)
	case listed("evaluated variables", name) && strings.Trim(value, "0123456789") != "":
		w.undecided(true, "sets "+name+", which bash evaluates")
	}
}

// assignedValue returns what is assigned, "$" if that is not known. A PATH is returned as it was written.
func assignedValue(w *walker, a *syntax.Assign) string {
	switch {
	case a.Array != nil || a.Append:
		return "$"
	case a.Value == nil:
		return ""
	}
	if v := w.word(a.Value); v.Static && !v.Home {
		return v.Text
	}
	if a.Name.Value == "PATH" {
		return w.source(a.Value)
	}
	return "$"
}

// readDeclaration lists export, declare, local, readonly, typeset and nameref as
// the builtins they are.
func readDeclaration(w *walker, d *syntax.DeclClause) {
	c := Simple{Outer: w.outer, Led: w.led, Args: []Word{fixed(d.Variant.Value)},
		Source: w.source(d)}
	for _, a := range d.Args {
		word := Word{Text: w.source(a), single: true}
		switch {
		case a.Name == nil && a.Value != nil:
			word = w.word(a.Value)
		case a.Name != nil && a.Naked && a.Index == nil:
			word = fixed(a.Name.Value)
		case a.Name != nil && a.Value != nil && a.Index == nil && a.Array == nil && !a.Append:
			word.prefix = a.Name.Value + "="
			if v := w.word(a.Value); v.Static && !v.Home {
				word.Text, word.Static = word.prefix+v.Text, true
			}
		}
		c.Args = append(c.Args, word)
	}
	w.simple(c, nil)
	w.current = -1
}

// readDeclare judges a declaration, whether the parser took it for one or it was
// found inside a wrapper or quotes. Bash expands the value of an array again, even where
// it was quoted: declare -a 'a=($(rm x))'.
func readDeclare(w *walker, c Simple) {
	for _, word := range c.Args[1:] {
		name, value, assigned := strings.Cut(word.Text, "=")
		name = strings.TrimSuffix(name, "+")
		switch {
		case word.Static && len(word.Text) > 1 && (word.Text[0] == '-' || word.Text[0] == '+'):
			if strings.Trim(word.Text[1:], "xrglu") != "" {
				w.undecided(true, "an array, an integer or a reference, whose value bash evaluates")
			}
		case !syntax.ValidName(name) || !word.Static && word.prefix == "":
			w.undecided(true, c.Name+" of a name or a value that bash evaluates: "+word.Text)
		default:
			// A variable that is an array by now evaluates a value that begins with "(".
			if assigned && (strings.HasPrefix(value, "(") || !word.Static && w.out.arrays) {
				w.undecided(true, "the value of an array, which bash expands")
			}
			if !word.Static && name != "PATH" {
				value = "$"
			}
			w.setsVariable(name, value)
		}
	}
}

// evaluated is the reason for a value that bash takes for an expression in turn, in which a subscript may hold $(…):
// a='x[$(rm f)]'; echo $((a)).
const evaluated = "bash evaluates a value in it"

// evaluates reports whether bash evaluates more at a node than its text.
func (w *walker) evaluates(n syntax.Node) bool {
	numbers := func(n syntax.Node) bool { return n == nil || ofNumbers().MatchString(w.source(n)) }
	subscript := func(x syntax.ArithmExpr) bool {
		word, ok := x.(*syntax.Word)
		return x != nil && !numbers(x) && !(ok && oneOf(word.Lit(), "@ *"))
	}
	switch n := n.(type) {
	case *syntax.LetClause, *syntax.CStyleLoop:
		return true
	case *syntax.ArithmExp:
		return !numbers(n.X)
	case *syntax.ArithmCmd:
		return !numbers(n.X)
	case *syntax.Assign:
		return subscript(n.Index)
	case *syntax.ArrayElem:
		return subscript(n.Index)
	case *syntax.BinaryTest:
		return n.Op >= syntax.TsEql && n.Op <= syntax.TsGtr && !(numbers(n.X) && numbers(n.Y))
	case *syntax.UnaryTest:
		return n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar
	case *syntax.ParamExp: // ${a[i]}, ${a:b}, ${!a}, ${a@P}; ${PATH:=a} sets it
		if n.Exp != nil && n.Param != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
			w.setsVariable(n.Param.Value, "$")
		}
		return subscript(n.Index) || n.Excl && n.Names == 0 ||
			n.Slice != nil && (subscript(n.Slice.Offset) || subscript(n.Slice.Length)) ||
			n.Exp != nil && n.Exp.Op == syntax.OtherParamOps && (n.Exp.Word == nil ||
				!oneOf(n.Exp.Word.Lit(), "Q U u L A a K k E"))
	}
	return false
}

// ofNumbers matches arithmetic with numbers in any of bash's notations, and with the expansions that always are
// numbers: $?, $#, $$, $! and ${#name}.
var ofNumbers = regular(`^([-+*/%()<>=!&|^~?:,"\s]|\d[\da-fA-FxX#]*|\$[?#$!]|\$\{#\w*\})*$`)

// makesArrays matches a text that may make a variable an array.
var makesArrays = regular(`=\\?\(|\]\+?=|\b(mapfile|readarray|coproc)\b|\s-\w*[aA]`)

// variableName judges a word that a builtin takes for the name of a variable
// and evaluates if it has a subscript.
func (w *walker) variableName(of string, word Word) {
	if !word.Static || !syntax.ValidName(word.Text) {
		w.undecided(true, of+" of a name that bash evaluates: "+word.Text)
	}
}
