package command

import (
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// A text often says itself what its variables hold: D=/; rm -rf "$D". Such values refuse or
// explain; they never allow, since a variable may be set in other ways too.

// maxValues bounds the values of one variable, and the readings of one word.
const maxValues = 32

// collectLoop records the items that a loop gives its variable.
func collectLoop(w *walker, loop *syntax.WordIter) {
	name := loop.Name.Value
	for _, item := range loop.Items {
		mayHold(w, name, item, false)
	}
}

// mayHold records what a variable may be given. It counts in others that some of it is not known.
func mayHold(w *walker, name string, value *syntax.Word, unknown bool) {
	var texts []string
	if !unknown {
		if word := w.word(value); word.Static && !word.Home {
			texts = []string{word.Text}
		} else {
			var known bool
			texts, known = guess(w, value)
			unknown = !known
		}
	}
	if len(w.out.Assigned[name])+len(texts) > maxValues {
		texts, unknown = nil, true
	}
	if unknown || len(texts) == 0 {
		w.out.others[name]++
	}
	for _, text := range texts {
		w.out.Assigned[name] = appendNew(w.out.Assigned[name], text)
	}
}

// guess returns what a word becomes with the values of its variables; known reports whether
// these are all its readings.
func guess(w *walker, arg *syntax.Word) (texts []string, known bool) {
	var names []string
	ok, here := true, false
	known = true
	syntax.Walk(arg, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ArithmExp, *syntax.ExtGlob:
			ok = false
		case *syntax.ParamExp:
			if n.Param == nil || n.Excl || n.Index != nil || n.Slice != nil || n.Names != 0 || n.Length || len(w.out.Assigned[n.Param.Value]) == 0 && n.Param.Value != "PWD" {
				ok = false
				break
			}
			if here = here || len(w.out.Assigned[n.Param.Value]) == 0; here {
				known = false // $PWD is guessed as ".", but not known
				break
			}
			names = appendNew(names, n.Param.Value)
			known = known && w.out.others[n.Param.Value] == 0
		}
		return ok
	})
	if !ok || len(names) == 0 && !here {
		return nil, false
	}
	defer func() {
		if recover() != nil { // the library panicked; nothing depends on a guess
			texts, known = nil, false
		}
	}()
	count := 1
	for _, name := range names {
		count *= len(w.out.Assigned[name])
	}
	for k := range min(count, maxValues) {
		now := map[string]string{"PWD": "."}
		for _, name := range names {
			values := w.out.Assigned[name]
			now[name] = values[k%len(values)]
			k /= len(values)
		}
		fields, err := expand.Fields(&expand.Config{Env: expand.FuncEnviron(func(name string) string { return now[name] })}, arg)
		if err != nil {
			return nil, false
		}
		texts = append(texts, fields...)
	}
	return texts, known && count <= maxValues
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
				list[i].Guesses, list[i].guessed = guess(w, word.arg)
			}
		}
	}
}

// Named reports whether the text says which files a word may name: literally, by a
// pattern, or by every value of its variables.
func (w Word) Named() bool { return w.Static || w.Home || w.Glob || w.guessed }
