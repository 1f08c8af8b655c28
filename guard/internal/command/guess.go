package command

import (
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
	w.mayHold(name, w.readings(item))
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
	if !ok || p.Param == nil || p.Excl || p.Length || p.Width || p.Index != nil || p.Slice != nil || p.Repl != nil || p.Exp != nil || p.Names != 0 {
		return ""
	}
	return p.Param.Value
}

// defaults notes what an expansion puts in place of a variable: ${x:-value}.
func (w *walker) defaults(p *syntax.ParamExp) {
	if givesDefault(p) {
		w.mayHold(p.Param.Value, w.readings(p.Exp.Word))
	}
}

func (w *walker) assigned(a *syntax.Assign) {
	texts := w.readings(a.Value)
	if a.Append {
		var longer []string
		for _, before := range w.out.values[a.Name.Value] {
			for _, text := range texts {
				longer = append(longer, before+text)
			}
		}
		texts = longer
	}
	w.mayHold(a.Name.Value, texts)
}

// readings returns what a word is, or may be.
func (w *walker) readings(arg *syntax.Word) []string {
	word := w.word(arg)
	if word.Static && !word.Home {
		return []string{word.Text}
	}
	var texts []string
	for _, fields := range word.guesses {
		texts = append(texts, strings.Join(fields, " "))
	}
	return texts
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
	names, ok := w.guessable(arg)
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
		now := map[string]string{}
		for _, name := range names {
			values := w.out.values[name]
			now[name] = values[k%len(values)]
			k /= len(values)
		}
		fields, err := expand.Fields(&expand.Config{Env: expand.FuncEnviron(func(name string) string { return now[name] })}, arg)
		if err != nil {
			return nil, nil
		}
		found = append(found, fields)
	}
	if count > maxGuesses {
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

// guessable returns the variables of a word, and whether all have values in the text
// and nothing else in it is unknown.
func (w *walker) guessable(arg *syntax.Word) (names []string, ok bool) {
	ok = len(w.out.values) > 0
	syntax.Walk(arg, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ArithmExp, *syntax.ExtGlob:
			ok = false
		case *syntax.ParamExp:
			if n.Param == nil || n.Excl || n.Index != nil || n.Slice != nil || n.Names != 0 || n.Length || len(w.out.values[n.Param.Value]) == 0 {
				ok = false
				break
			}
			names = appendNew(names, n.Param.Value)
		}
		return ok
	})
	return names, ok && len(names) > 0
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

// guessed returns the texts of a command with guesses in place of its dynamic words.
func guessed(args []Word) []string {
	most := 0
	for _, word := range args {
		most = max(most, len(word.guesses))
	}
	var texts []string
	for k := range most {
		var words []string
		for _, word := range args {
			if n := len(word.guesses); n > 0 {
				words = append(words, word.guesses[k%n]...)
			} else {
				words = append(words, word.Text)
			}
		}
		texts = append(texts, strings.Join(words, " "))
	}
	return texts
}
