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

// assignBefore judges an assignment in front of the command c.
func assignBefore(w *walker, c *Simple, a *syntax.Assign) {
	name := a.Name.Value
	// `IFS= read -r line` changes nothing but how read splits its line.
	if name == "IFS" && c.Args[0].Static && c.Args[0].Text == "read" {
		c.Assigns = append(c.Assigns, name)
		return
	}
	assignNamed(w, c, name, assignedValue(w, a))
}

// assignNamed judges an assignment for the command c, also one in its words.
func assignNamed(w *walker, c *Simple, name, value string) {
	w.setsVariable(name, value)
	c.Assigns = append(c.Assigns, name)
	c.unsafeEnv = c.unsafeEnv || steers(name) && !safeLead(name) && !harmlessValue(name, value) &&
		!keepsPath(name, value)
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
	c := Simple{Via: w.via, Outer: w.outer, Led: w.led, Args: []Word{fixed(d.Variant.Value)},
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
			if c.Name == "export" && steers(name) && !safeLead(name) && !harmlessValue(name, value) &&
				!keepsPath(name, value) {
				w.out.Commands[w.current].unsafeEnv = true
			}
		}
	}
}

// readArray judges an assignment to an array. To bash, name=(…)#x is one word; the parser takes
// what follows "#" for a comment.
func readArray(w *walker, a *syntax.Assign) {
	if end := int(a.End().Offset()); a.Array != nil && end < len(w.text) && w.text[end] == '#' {
		w.undecided(true, "a comment right after an array, which bash takes for a part of it")
	}
}

// arithmetic judges an arithmetic expression. Bash evaluates the value of a variable in it
// as an expression again, and a subscript in that may hold $(…): a='x[$(rm f)]'; echo $((a)).
func (w *walker) arithmetic(x syntax.ArithmExpr) {
	if x != nil && !ofNumbers().MatchString(w.source(x)) {
		w.undecided(true, "a variable in arithmetic, whose value bash evaluates")
	}
}

// ofNumbers matches arithmetic with numbers in any of bash's notations, and with the expansions that always are
// numbers: $?, $#, $$, $! and ${#name}.
var ofNumbers = regular(`^([-+*/%()<>=!&|^~?:,"\s]|\d[\da-fA-FxX#]*|\$[?#$!]|\$\{#\w*\})*$`)

// makesArrays matches a text that may make a variable an array.
var makesArrays = regular(`=\\?\(|\]\+?=|\b(mapfile|readarray|coproc)\b|\s-\w*[aA]`)

// readParam judges a parameter expansion that evaluates text: a subscript, an
// offset, ${!name}, ${name@P}, ${name:=value}.
func readParam(w *walker, p *syntax.ParamExp) {
	if word, ok := p.Index.(*syntax.Word); p.Index != nil && (!ok || word.Lit() != "@" && word.Lit() != "*") {
		w.arithmetic(p.Index)
	}
	if p.Slice != nil {
		w.arithmetic(p.Slice.Offset)
		w.arithmetic(p.Slice.Length)
	}
	if p.Excl && p.Names == 0 {
		w.undecided(true, "an indirect expansion, whose name bash evaluates")
	}
	if p.Exp == nil {
		return
	}
	switch p.Exp.Op {
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if p.Param != nil {
			w.setsVariable(p.Param.Value, "$")
		}
	case syntax.OtherParamOps:
		if p.Exp.Word == nil || !oneOf(p.Exp.Word.Lit(), "Q U u L A a K k E") {
			w.undecided(true, "a prompt expansion, which runs commands in its value")
		}
	}
}

// readTests judges [[ a -eq b ]], whose operands are arithmetic, and [[ -v name ]].
func readTests(w *walker, n syntax.Node) {
	switch n := n.(type) {
	case *syntax.BinaryTest:
		switch n.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			for _, side := range []syntax.TestExpr{n.X, n.Y} {
				if word, ok := side.(*syntax.Word); ok {
					w.arithmetic(word)
				}
			}
		}
	case *syntax.UnaryTest:
		if word, ok := n.X.(*syntax.Word); ok && (n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar) {
			w.variableName("[[ "+n.Op.String(), w.word(word))
		}
	}
}

// variableName judges a word that a builtin takes for the name of a variable
// and evaluates if it has a subscript.
func (w *walker) variableName(of string, word Word) {
	if !word.Static || !syntax.ValidName(word.Text) {
		w.undecided(true, of+" of a name that bash evaluates: "+word.Text)
	}
}
