package command

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// setsVariable judges an assignment that lasts: value is its text, or "$" where
// that is not known.
func (w *walker) setsVariable(name, value string) {
	switch {
	case name == "PATH" && addsToPath().MatchString(value):
		w.undecided(false, growsPath)
	case steers(name) && !harmlessValue(name, value):
		w.undecided(true, setsPrefix+name)
	case evaluates(name) && strings.Trim(value, "0123456789") != "":
		w.undecided(true, "sets "+name+", which bash evaluates")
	}
}

// leads judges an assignment in front of the command c.
func (w *walker) leads(c *Simple, a *syntax.Assign) {
	name := a.Name.Value
	c.Assigns = append(c.Assigns, name)
	// `IFS= read -r line` changes nothing but how read splits its line.
	if name == "IFS" && c.Args[0].Static && c.Args[0].Text == "read" {
		return
	}
	value := w.value(a)
	if name == "PATH" && value == "$" && a.Value != nil && !a.Append {
		value = w.source(a.Value)
	}
	w.setsVariable(name, value)
	c.unsafeEnv = c.unsafeEnv || !safeLead(name) && !harmlessValue(name, value)
}

// leadsNamed is leads for an assignment in the words of the command at index.
func (w *walker) leadsNamed(index int, name, value string) {
	w.setsVariable(name, value)
	c := &w.out.Commands[index]
	c.Assigns = append(c.Assigns, name)
	c.unsafeEnv = c.unsafeEnv || !safeLead(name) && !harmlessValue(name, value)
}

// value returns what is assigned, "$" if that is not known.
func (w *walker) value(a *syntax.Assign) string {
	switch {
	case a.Array != nil || a.Append:
		return "$"
	case a.Value == nil:
		return ""
	}
	if v := w.word(a.Value); v.Static && !v.Home {
		return v.Text
	}
	return "$"
}

// declaration lists export, declare, local, readonly, typeset and nameref as
// the builtins they are.
func (w *walker) declaration(d *syntax.DeclClause) {
	c := Simple{Via: w.via, Outer: w.outer, Places: w.standing, Args: []Word{{Text: d.Variant.Value, Static: true, single: true}}}
	for _, a := range d.Args {
		c.Args = append(c.Args, w.declared(a))
	}
	c.Source = w.source(d)
	w.simple(c, nil)
	w.current = -1
}

// declared turns one operand of a declaration into a word again.
func (w *walker) declared(a *syntax.Assign) Word {
	switch {
	case a.Name == nil && a.Value != nil:
		return w.word(a.Value)
	case a.Name == nil:
		return Word{Text: w.source(a)}
	case a.Naked:
		return Word{Text: a.Name.Value, Static: a.Index == nil, single: true, prefix: a.Name.Value}
	}
	word := Word{Text: w.source(a), single: true, prefix: a.Name.Value + "=", array: a.Array != nil}
	if a.Array != nil || a.Index != nil || a.Value == nil {
		return word
	}
	v := w.word(a.Value)
	switch {
	case v.Home:
	case v.Static && !a.Append:
		word.Text, word.Static = word.prefix+v.Text, true
	default:
		word.prefix += v.prefix
	}
	return word
}

// arrays are the variables of a text that are arrays, and those that are declared
// with a value that is not known. Bash expands the value of a declared array that
// begins with "(", though it was quoted: declare -a 'a=($(rm x))'.
type arrays struct {
	names    map[string]bool
	declared []declared
}

// declared is a variable and the index of the command that declares it.
type declared struct {
	name    string
	command int
}

func (a *arrays) add(name string) {
	if a.names == nil {
		a.names = map[string]bool{}
	}
	a.names[name] = true
}

// array notes a variable that is an array. To bash, name=(…)#x is one word; the
// parser takes what follows "#" for a comment.
func (w *walker) array(a *syntax.Assign) {
	if a.Name == nil || a.Array == nil && a.Index == nil {
		return
	}
	w.out.arrays.add(a.Name.Value)
	if end := int(a.End().Offset()); a.Array != nil && end < len(w.text) && w.text[end] == '#' {
		w.undecided(true, "a comment right after an array, which bash takes for a part of it")
	}
}

const expandsArray = "the value of an array, which bash expands"

// declaresArrays judges the declarations whose value was not known, now that it is
// known which variables are arrays.
func (w *walker) declaresArrays() {
	for _, d := range w.out.arrays.declared {
		if w.out.arrays.names[d.name] {
			w.current = d.command
			w.undecided(true, expandsArray)
		}
	}
}

// valueOf judges what a declaration gives a variable.
func (w *walker) valueOf(name, value string, word Word, isArray bool) {
	known := word.prefix
	if _, after, ok := strings.Cut(word.prefix, "="); ok {
		known = after
	}
	if isArray || word.array {
		w.out.arrays.add(name)
	}
	switch {
	case word.array || !strings.Contains(word.Text, "="):
	case word.Static && !strings.HasPrefix(value, "("), known != "" && known[0] != '(' && !word.Static:
	case isArray:
		w.undecided(true, expandsArray)
	default:
		w.out.arrays.declared = append(w.out.arrays.declared, declared{name, w.current})
	}
}

// declares judges a declaration, whether the parser took it for one or it was
// found behind a wrapper or quotes.
func (w *walker) declares(c Simple) {
	isArray := slices.ContainsFunc(c.Args[1:], func(word Word) bool {
		return len(word.Text) > 1 && word.Text[0] == '-' && strings.ContainsAny(word.Text, "aA")
	})
	for _, word := range c.Args[1:] {
		name, value, _ := strings.Cut(word.Text, "=")
		name = strings.TrimSuffix(name, "+")
		switch {
		case word.Static && len(word.Text) > 1 && (word.Text[0] == '-' || word.Text[0] == '+'):
			if word.Text[0] == '-' && strings.ContainsAny(word.Text, "in") {
				w.undecided(true, "an integer or reference variable, whose value bash evaluates")
			}
			continue
		case !word.Static && !isName(strings.TrimSuffix(strings.TrimSuffix(word.prefix, "="), "+")):
			// `declare "$x"` may name a variable as a[$(cmd)].
			if i := strings.IndexByte(word.Text, '='); i < 0 || !isName(name) {
				w.undecided(true, c.Name+" of a dynamic name")
				continue
			}
		}
		if !isName(name) {
			w.undecided(true, c.Name+" of a name that bash evaluates: "+name)
			continue
		}
		w.valueOf(name, value, word, isArray)
		if strings.Contains(word.Text, "=") && !slices.Contains(w.out.values[name], value) {
			w.mayHoldOther(name)
		}
		if !word.Static && !(name == "PATH" && addsToPath().MatchString(value)) {
			value = "$"
		}
		w.setsVariable(name, value)
		if c.Name == "export" && !safeLead(name) {
			w.out.Commands[w.current].unsafeEnv = true
		}
	}
}

// arithmetic judges an arithmetic expression. Bash evaluates the value of a
// variable in it as an expression again, and a subscript in that may hold
// $(…): a='x[$(rm f)]'; echo $((a)).
func (w *walker) arithmetic(x syntax.ArithmExpr) {
	if x == nil {
		return
	}
	found := false
	syntax.Walk(x, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ParamExp:
			found = found || !numeric(n) && !w.holdsNumber(n)
			return false
		case *syntax.CmdSubst:
			found = found || !w.printsNumber(n) // its output is evaluated
			return false
		case *syntax.Lit:
			found = found || namesVariable(n.Value) && !w.number[n.Value]
		case *syntax.SglQuoted:
			found = found || n.Dollar || namesVariable(n.Value)
		}
		return true
	})
	if found {
		w.undecided(true, "a variable in arithmetic, whose value bash evaluates")
	}
}

// namesVariable reports whether text in an arithmetic expression may be the name
// of a variable.
func namesVariable(s string) bool {
	return !isNumber(s) && strings.ContainsFunc(s, func(r rune) bool { return r == '_' || r > 0x7f || isLetter(byte(r)) })
}

// isNumber reports whether a literal is a number in one of bash's notations.
func isNumber(s string) bool {
	return s != "" && isDigit(s[0]) && strings.Trim(s, "0123456789abcdefABCDEFxX#") == ""
}

// numeric reports whether an expansion is always a number: $?, $#, $$, $!,
// ${#name}.
func numeric(p *syntax.ParamExp) bool {
	if p.Param == nil || p.Index != nil || p.Exp != nil || p.Slice != nil || p.Repl != nil || p.Excl {
		return false
	}
	return p.Length || oneOf(p.Param.Value, "? # $ !")
}

// param judges a parameter expansion that evaluates text: a subscript, an
// offset, ${!name}, ${name@P}, ${name:=value}.
func (w *walker) param(p *syntax.ParamExp) {
	if p.Index != nil {
		w.arithmetic(plainSubscript(p.Index))
	}
	if p.Slice != nil {
		w.arithmetic(p.Slice.Offset)
		w.arithmetic(p.Slice.Length)
	}
	if p.Excl && p.Names == 0 && !isListIndex(p.Index) {
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

// plainSubscript drops the subscripts @ and *, which are not evaluated.
func plainSubscript(x syntax.ArithmExpr) syntax.ArithmExpr {
	if isListIndex(x) {
		return nil
	}
	return x
}

func isListIndex(x syntax.ArithmExpr) bool {
	word, ok := x.(*syntax.Word)
	return ok && (word.Lit() == "@" || word.Lit() == "*")
}

// binaryTest judges [[ a -eq b ]], whose operands are arithmetic.
func (w *walker) binaryTest(t *syntax.BinaryTest) {
	switch t.Op {
	case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
		for _, side := range []syntax.TestExpr{t.X, t.Y} {
			if word, ok := side.(*syntax.Word); ok {
				w.arithmetic(unquoted(word))
			}
		}
	}
}

// unquoted looks through the quotes around a whole word.
func unquoted(word *syntax.Word) *syntax.Word {
	if len(word.Parts) == 1 {
		if q, ok := word.Parts[0].(*syntax.DblQuoted); ok {
			return &syntax.Word{Parts: q.Parts}
		}
	}
	return word
}

// unaryTest judges [[ -v name ]] and [[ -R name ]].
func (w *walker) unaryTest(t *syntax.UnaryTest) {
	if t.Op != syntax.TsVarSet && t.Op != syntax.TsRefVar {
		return
	}
	if word, ok := t.X.(*syntax.Word); ok {
		w.variableName("[[ "+t.Op.String(), w.word(word))
	}
}

// variableName judges a word that a builtin takes for the name of a variable
// and evaluates if it has a subscript.
func (w *walker) variableName(of string, word Word) {
	switch {
	case !word.Static:
		w.undecided(true, of+" of a dynamic name")
	case !isName(word.Text):
		if i := strings.IndexByte(word.Text, '['); i > 0 {
			sub := strings.TrimSuffix(word.Text[i+1:], "]")
			if isName(word.Text[:i]) && (sub == "@" || sub == "*" || sub != "" && strings.Trim(sub, "0123456789") == "") {
				return
			}
		}
		w.undecided(true, of+" of a name that bash evaluates: "+word.Text)
	}
}
