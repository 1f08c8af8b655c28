package command

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// isWrapper reports whether a program runs the command given in its own words.
func isWrapper(name string) bool { return listed("wrappers", name) }

// OnlyWraps reports whether the words that a rule begins with name a wrapper, and no command that it runs.
func OnlyWraps(words []string) bool {
	return len(words) > 0 && isWrapper(words[0]) && !slices.ContainsFunc(words[1:], func(w string) bool {
		return !isOption(w) && !assigns(w) && strings.Trim(w, "0123456789.smhd{}") != ""
	})
}

// readWrapper looks at what a wrapper runs.
func readWrapper(w *walker, c Simple, stdin []*syntax.Redirect) {
	wrapper, _ := recordOf("wrappers", c.Name)
	short, open := strings.CutPrefix(wrapper.lists["short"], "*")
	p := spec{short: short, long: wrapper.lists["long"], open: open}.parse(c.Args)
	if p.unsure != "" {
		w.undecided(true, c.Name+": "+p.unsure)
		return
	}
	w.out.Commands[w.current].transparent = !wrapper.flags["loud"]
	inner := c.Args[min(p.rest, len(c.Args)):]
	for wrapper.flags["assigns"] && len(inner) > 0 {
		name, value, ok := strings.Cut(inner[0].Text, "=")
		if ok && (inner[0].Static || syntax.ValidName(name)) {
			if !inner[0].Static {
				value = "$"
			}
			w.setsVariable(name, value)
		} else if !inner[0].Static || inner[0].Text != "-" { // env -, the same as -i
			break
		}
		inner = inner[1:]
	}
	skip := wrapper.flags["skip"]
	if !readWrapperOptions(w, wrapper, c.Name, p, inner) || skip && len(inner) == 0 {
		return
	}
	if skip {
		if word := inner[0]; !word.Static && !word.single {
			w.undecided(true, c.Name+" with an operand that may become several words: "+word.Text)
		}
		inner = inner[1:]
	}
	if len(inner) == 0 {
		if oneOf(c.Name, "env genv sudo doas busybox toybox") { // it prints the environment, or starts a shell
			w.out.Commands[w.current].transparent = false
		}
		return
	}
	if c.Name == "xargs" || c.Name == "gxargs" {
		inner, stdin = supplied(p, inner), nil
	}
	w.inner(inner, stdin)
}

// readWrapperOptions deals with options that change what a wrapper does. It
// reports whether the words after them are a command still.
func readWrapperOptions(w *walker, wrapper record, name string, p parsed, inner []Word) bool {
	if p.has(wrapper.lists["moves"]) {
		w.out.Lost = true
	}
	w.out.Reads = append(w.out.Reads, p.values(wrapper.lists["reads"])...)
	w.out.Writes = append(w.out.Writes, p.values(wrapper.lists["writes"])...)
	switch name {
	case "env", "genv":
		for _, value := range p.values("u unset") {
			w.setsVariable(value.Text, "")
		}
		if p.has("S split-string") {
			w.undecided(true, "env -S splits text into a command, otherwise than a shell")
			return false
		}
	case "sudo", "doas":
		if len(inner) == 0 && p.has("i s login shell") {
			w.undecided(true, name+" starts a shell that reads its standard input")
		}
	case "watch":
		if len(inner) > 0 && !p.has("x exec") {
			w.textOf(name, scriptWord(inner), true, nil)
			return false
		}
	case "flock":
		if len(inner) > 1 {
			w.out.Writes = append(w.out.Writes, inner[0]) // flock creates the file if it does not exist
		}
	}
	return !p.has(wrapper.lists["stops"])
}

// supplied returns the command of xargs: words that hold the replace string are
// filled in, or else words are added at the end.
func supplied(p parsed, inner []Word) []Word {
	replace := ""
	for _, o := range p.options {
		if oneOf(o.name, "I i replace") {
			replace = "{}"
			if o.has {
				replace = o.value.Text
			}
			if o.has && !o.value.Static {
				return []Word{{Text: join(inner)}} // any word may be filled in
			}
		}
	}
	return fill(inner, replace)
}

// fill marks the words that a program like xargs or find writes into, which are
// those that hold replace. Without replace a word is added.
func fill(inner []Word, replace string) []Word {
	out := make([]Word, 0, len(inner)+1)
	for _, word := range inner {
		switch {
		case replace == "":
		case !word.Static:
			word.prefix = "" // the word may expand to the replace string
		case strings.Contains(word.Text, replace):
			word.Static, word.single = false, true
			word.prefix, _, _ = strings.Cut(word.Text, replace)
		}
		out = append(out, word)
	}
	if replace == "" {
		out = append(out, Word{Text: "{}"})
	}
	return out
}

// inner analyses a command that is in the words of the current one.
func (w *walker) inner(args []Word, stdin []*syntax.Redirect) {
	outer := w.current
	sub := *w
	sub.outer = outer
	sub.depth++
	sub.funcs = nil // programs run programs, not functions
	sub.simple(Simple{Args: args, Outer: outer, Led: w.out.Commands[outer].Led}, stdin)
	w.current = outer
}

// textOf analyses a script given as a word. posix tells that a plain sh runs it, which may be any shell. funcs are
// the functions it can call.
func (w *walker) textOf(of string, script Word, posix bool, funcs map[string]bool) {
	outer := w.current
	if !script.Static {
		w.out.foreign = true
		w.undecided(true, of+" of dynamic text")
		return
	}
	if w.depth > maxDepth {
		w.unread("too many commands, or nested too deep")
		return
	}
	sub := &walker{out: w.out, outer: outer, current: -1, depth: w.depth + 1, posix: posix,
		funcs: funcs, led: w.out.Commands[outer].Led}
	if of == "trap" { // which may run in any directory
		sub.led = 0
	}
	before := len(w.out.Undecidable)
	sub.script(script.Text)
	w.current = outer
	c := &w.out.Commands[outer]
	for _, reason := range w.out.Undecidable[before:] { // the command has the reasons of its script too
		c.Undecidable = appendNew(c.Undecidable, reason)
	}
}
