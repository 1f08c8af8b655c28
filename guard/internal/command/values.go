package command

import (
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// A text often says itself what a variable holds: D=/; rm -rf "$D". Such values refuse or
// explain; they never allow, since a variable may be set in other ways too.

// maxValues bounds the values of one variable, and the readings of one word. maxBraces bounds the braces of a word that
// is read: an expansion copies what follows each.
const maxValues, maxBraces = 32, 20

// mayHold notes a literal value that a text gives a variable.
func mayHold(w *walker, name string, value *syntax.Word) {
	if word := w.word(value); word.Static && !word.Home && len(w.out.values[name]) < maxValues {
		w.out.values[name] = appendNew(w.out.values[name], word.Text)
	}
}

// guess returns what a word may become with the values of its variable, or by its braces. A leading "~" is the home
// directory.
func guess(w *walker, word Word) (texts []string) {
	arg, name, known := word.arg, "", true
	syntax.Walk(arg, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ArithmExp, *syntax.ExtGlob:
			known = false
		case *syntax.ParamExp:
			known = known && n.Param != nil && (name == "" || name == n.Param.Value)
			if n.Param != nil {
				name = n.Param.Value
			}
		}
		return known
	})
	defer func() {
		if recover() != nil { // of a library: nothing depends on a guess
			texts = nil
		}
	}()
	values := w.out.values[name]
	switch {
	case !known || strings.Count(word.Text, "{") > maxBraces:
		return nil
	case name == "PWD":
		values = []string{"."}
	case name == "" && word.Braces, name == "HOME":
		values = []string{"~"}
	}
	for _, value := range values {
		env := expand.FuncEnviron(func(n string) string { return map[string]string{"HOME": "~", name: value}[n] })
		for text, err := range expand.FieldsSeq(&expand.Config{Env: env}, arg) {
			if err != nil || len(texts) == maxValues {
				return texts
			}
			texts = append(texts, text)
		}
	}
	return texts
}

// settle computes the guesses of words after the values of all variables are known: in a loop, a word may be reached
// again after a later assignment.
func settle(w *walker) {
	lists := [][]Word{w.out.Reads, w.out.Writes}
	for _, c := range w.out.Commands {
		lists = append(lists, c.Args)
	}
	for _, list := range lists {
		for i, word := range list {
			if word.arg != nil {
				list[i].Guesses = guess(w, word)
			}
		}
	}
}
