package command

import (
	"io"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// A text often says itself what its variables hold: F=.env; cat $F. What a word
// would be with such values is no knowledge, since the variable may be set in other
// ways too, but a deny or ask rule that matches a guess is meant for the command.

const (
	maxValues  = 32 // of one variable, the first ones
	maxGuesses = 32 // of one word
)

// collect notes the values that the assignments and loops of a text name.
func (w *walker) collect(stmts []*syntax.Stmt) {
	if !strings.Contains(w.text, "=") && !strings.Contains(w.text, "for ") && !strings.Contains(w.text, "${") {
		return
	}
	for _, stmt := range stmts {
		syntax.Walk(stmt, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.Assign:
				switch {
				case n.Name == nil:
				case n.Value != nil && n.Array == nil && n.Index == nil:
					w.assigned(n)
				case n.Array != nil || n.Index != nil:
					w.mayHoldOther(n.Name.Value)
				}
			case *syntax.ParamExp:
				w.defaults(n)
			case *syntax.WordIter:
				for _, item := range n.Items {
					w.loops(n.Name.Value, item)
				}
			}
			return true
		})
	}
}

// loops notes an item that a loop gives its variable.
func (w *walker) loops(name string, item *syntax.Word) {
	if word := w.word(item); word.Glob {
		if w.out.patterns == nil {
			w.out.patterns = map[string][]Word{}
		}
		w.out.patterns[name] = append(w.out.patterns[name], word)
	}
	w.mayHoldWord(name, item)
}

// Values returns the words that a word stands for which is a variable alone, if the text
// gives this all its values, as `for f in *.go` does.
func (a *Analysis) Values(w Word) (values []Word, ok bool) {
	if w.name == "" || a.others[w.name] != len(a.patterns[w.name]) {
		return nil, false
	}
	for _, text := range a.values[w.name] {
		values = append(values, Word{Text: text, Static: true, single: true})
	}
	values = append(values, a.patterns[w.name]...)
	return values, len(values) > 0
}

// Single reports whether the shell makes no more than one word of it.
func (w Word) Single() bool { return w.single }

// Given reports whether the word is what find or xargs puts there.
func (w Word) Given() bool { return w.given }

// variableOf returns the variable whose value is all of a word: $f, "$f" or "${f}".
func variableOf(arg *syntax.Word) string {
	parts := arg.Parts
	if len(parts) == 1 {
		if quoted, ok := parts[0].(*syntax.DblQuoted); ok {
			parts = quoted.Parts
		}
	}
	if len(parts) != 1 {
		return ""
	}
	p, ok := parts[0].(*syntax.ParamExp)
	if !ok || p.Param == nil || !plainExpansion(p) {
		return ""
	}
	return p.Param.Value
}

// plainExpansion reports whether an expansion is that of a variable as it is.
func plainExpansion(p *syntax.ParamExp) bool {
	return !p.Excl && !p.Length && !p.Width && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Exp == nil && p.Names == 0
}

// defaults notes what an expansion puts in place of a variable: ${x:-value}.
func (w *walker) defaults(p *syntax.ParamExp) {
	if givesDefault(p) {
		w.mayHoldWord(p.Param.Value, p.Exp.Word)
	}
}

func (w *walker) assigned(a *syntax.Assign) {
	if !a.Append {
		w.mayHoldWord(a.Name.Value, a.Value)
		return
	}
	texts, all := w.readings(a.Value)
	var longer []string
	for _, before := range w.out.values[a.Name.Value] {
		for _, text := range texts {
			longer = append(longer, before+text)
		}
	}
	if w.mayHold(a.Name.Value, longer); !all && len(longer) > 0 {
		w.mayHoldOther(a.Name.Value)
	}
}

// readings returns what a word is, or may be, and whether it is nothing else.
func (w *walker) readings(arg *syntax.Word) (texts []string, all bool) {
	word := w.word(arg)
	if word.Static && !word.Home {
		return []string{word.Text}, true
	}
	for _, fields := range word.guesses {
		texts = append(texts, strings.Join(fields, " "))
	}
	return texts, len(word.from) > 0
}

// mayHoldWord notes that a variable may be given what a word is.
func (w *walker) mayHoldWord(name string, arg *syntax.Word) {
	texts, all := w.readings(arg)
	if w.mayHold(name, texts); !all && len(texts) > 0 {
		w.mayHoldOther(name)
	}
}

// mayHold notes texts that a variable may be given; none if it is not known what.
func (w *walker) mayHold(name string, texts []string) {
	if w.out.values == nil {
		w.out.values = map[string][]string{}
	}
	for _, text := range texts {
		if slices.Contains(w.out.values[name], text) {
			continue
		}
		if len(w.out.values[name]) == maxValues {
			texts = nil
			break
		}
		w.out.values[name] = append(w.out.values[name], text)
	}
	if len(texts) == 0 {
		w.mayHoldOther(name)
	}
}

// mayHoldOther notes that a variable may be given more than is known.
func (w *walker) mayHoldOther(name string) {
	if w.out.others == nil {
		w.out.others = map[string]int{}
	}
	w.out.others[name]++
}

// guess returns the words that an argument may become, if all of its variables have
// values in the text, and these variables, unless there are more guesses than are made.
func (w *walker) guess(arg *syntax.Word) (found [][]string, from []string) {
	names, printed, ok := w.guessable(arg)
	if !ok {
		return nil, nil
	}
	defer func() {
		if recover() != nil { // of a library: nothing depends on a guess
			found, from = nil, nil
		}
	}()
	count := 1
	for _, name := range names {
		count *= len(w.out.values[name])
	}
	for k := range min(count, maxGuesses) {
		now := map[string]string{"PWD": "."}
		for _, name := range names {
			values := w.out.values[name]
			now[name] = values[k%len(values)]
			k /= len(values)
		}
		fields, err := expand.Fields(&expand.Config{Env: expand.FuncEnviron(func(name string) string { return now[name] }), CmdSubst: writePrinted}, arg)
		if err != nil {
			return nil, nil
		}
		found = append(found, fields)
	}
	if count > maxGuesses || printed {
		names = nil
	}
	return found, names
}

// Names reports whether the text says which files a word may name: as it stands, by a
// pattern, or by every value of its variables.
func (a *Analysis) Names(w Word) bool {
	if w.Static || w.Home || w.Glob {
		return true
	}
	return len(w.from) > 0 && !slices.ContainsFunc(w.from, func(name string) bool { return a.others[name] > 0 })
}

// guessable returns the variables of a word, whether some of it is printed by commands
// of which the text says what they print, or is the directory it runs in, and whether
// nothing else in it is unknown.
func (w *walker) guessable(arg *syntax.Word) (names []string, printed, ok bool) {
	ok = true
	syntax.Walk(arg, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			_, known := prints(n)
			printed, ok = printed || known, ok && known
			return false
		case *syntax.ProcSubst, *syntax.ArithmExp, *syntax.ExtGlob:
			ok = false
		case *syntax.ParamExp:
			if n.Param == nil || n.Excl || n.Index != nil || n.Slice != nil || n.Names != 0 || n.Length || len(w.out.values[n.Param.Value]) == 0 && n.Param.Value != "PWD" {
				ok = false
				break
			}
			if len(w.out.values[n.Param.Value]) == 0 {
				printed = true // where it stands, which "." says as well
				break
			}
			names = appendNew(names, n.Param.Value)
		}
		return ok
	})
	return names, printed, ok && (printed || len(names) > 0)
}

// prints returns the output of `$(echo …)` and `$(printf …)` with fixed words.
func prints(sub *syntax.CmdSubst) (string, bool) {
	if len(sub.Stmts) != 1 || len(sub.Stmts[0].Redirs) > 0 {
		return "", false
	}
	call, ok := callOf(sub.Stmts[0])
	if !ok || len(call.Assigns) > 0 || len(call.Args) < 2 {
		return "", false
	}
	var words []string
	for _, arg := range call.Args {
		e := expansion{single: true, known: true}
		for i, part := range arg.Parts {
			e.part(part, i == 0, i == len(arg.Parts)-1)
		}
		if !e.known || e.glob || e.home || openBraces(arg) > 0 {
			return "", false
		}
		words = append(words, e.text.String())
	}
	switch name, args := words[0], words[1:]; {
	case name == "printf" && args[0] == "--" && len(args) > 1:
		return formatted(args[1], args[2:])
	case name == "printf" && !isOption(args[0]):
		return formatted(args[0], args[1:])
	case name != "echo":
		return "", false
	case args[0] == "-e", args[0] == "-ne", args[0] == "-en":
		text, _, err := expand.Format(nil, strings.Join(args[1:], " "), nil)
		return text, err == nil
	case args[0] == "-n":
		return strings.Join(args[1:], " "), true
	default:
		return strings.Join(args, " "), true
	}
}

// formatted is what printf prints, which goes through its format until no word is left.
func formatted(format string, args []string) (string, bool) {
	for _, after := range strings.Split(strings.ReplaceAll(format, "%%", ""), "%")[1:] {
		if after == "" || strings.IndexByte("sbcdq", after[0]) < 0 { // nor with a width, which may be large
			return "", false
		}
	}
	var b strings.Builder
	for range len(args) + 1 {
		text, n, err := expand.Format(nil, format, args)
		if err != nil {
			return "", false
		}
		b.WriteString(text)
		if args = args[min(n, len(args)):]; n == 0 || len(args) == 0 {
			break
		}
	}
	return b.String(), true
}

// writePrinted writes what a command prints of which the text says so.
func writePrinted(out io.Writer, sub *syntax.CmdSubst) error {
	text, _ := prints(sub)
	_, err := io.WriteString(out, text)
	return err
}

// Guesses returns what a word that is not static may become, as far as the text
// itself says: for rules that forbid, never for those that allow.
func (w Word) Guesses() []string {
	var texts []string
	for _, fields := range w.guesses {
		texts = append(texts, fields...)
	}
	return texts
}

// guessed returns the words of a command with guesses in place of its dynamic words.
func guessed(args []Word) (all [][]Word) {
	most := 0
	for _, word := range args {
		most = max(most, len(word.guesses))
	}
	for k := range most {
		var words []Word
		for _, word := range args {
			if n := len(word.guesses); n == 0 {
				words = append(words, word)
			} else {
				for _, text := range word.guesses[k%n] {
					words = append(words, fixed(text))
				}
			}
		}
		if len(words) > 0 {
			all = append(all, words)
		}
	}
	return all
}
