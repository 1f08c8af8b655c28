package command

import (
	"cmp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// shellSpec lists the options of bash that change nothing but how its script runs, and -c, -n and -s.
var shellSpec = spec{short: "abcefhlmnprstuvxBCDEHPTo:O:",
	long: "norc noprofile posix verbose login restricted noediting help version rcfile: init-file:"}

// readShell looks at what bash and its kin run: the text after -c, a script file, or standard input.
func readShell(w *walker, c Simple, stdin []*syntax.Redirect) {
	posix := oneOf(c.Name, "sh dash ash")
	if !posix && !oneOf(c.Name, "bash rbash") {
		w.undecided(true, c.Name+" reads its script in another way than bash")
	}
	p := shellSpec.parse(c.Args)
	if len(p.operands) > 0 && p.operands[0].Text == "-" { // ends the options
		p.operands = p.operands[1:]
	}
	long := slices.ContainsFunc(p.options, func(o option) bool { return o.long })
	odd := func(word Word) bool { // bash takes long options with one dash too, and + takes an option back
		return strings.HasPrefix(word.Text, "+") || strings.HasPrefix(word.prefix, "+") ||
			listed("single dash", word.Text)
	}
	switch {
	case p.unsure != "" || slices.ContainsFunc(c.Args[1:], odd), long && posix, p.has("rcfile init-file"):
		w.out.foreign = true
		w.undecided(true, c.Name+" with options that are not known: "+cmp.Or(p.unsure, join(c.Args)))
	case p.has("help version"):
	case p.has("n"):
		w.out.Commands[w.current].transparent = true
		if len(p.operands) > 0 && !p.has("c") {
			w.out.Reads = append(w.out.Reads, p.operands[0]) // with -v it is shown, without it what it gets wrong
		}
	case p.has("c"):
		if len(p.operands) > 0 {
			w.out.Commands[w.current].transparent = p.operands[0].Static
			w.textOf(c.Name+" -c", p.operands[0], posix, nil)
		}
	case len(p.operands) > 0 && !p.has("s"):
		w.obeys(p.operands[0])
		w.startsByPurpose(true, c.Name+" runs a file: "+p.operands[0].Text)
	default:
		if script, ok := scriptOf(w, stdin); ok {
			w.out.Commands[w.current].transparent = true
			w.textOf(c.Name+" <<", Word{Text: script, Static: true}, posix, nil)
			return
		}
		w.out.foreign = w.out.foreign || !slices.ContainsFunc(stdin, isInput)
		w.undecided(true, c.Name+" runs what it reads from its standard input")
	}
}

// obeys notes a file that a shell runs.
func (w *walker) obeys(file Word) {
	file.Obeyed = true
	w.out.Reads = append(w.out.Reads, file)
	w.out.foreign = w.out.foreign || file.Stream()
}

// scriptOf returns the text of the only heredoc or here-string of a statement, if
// it does not depend on anything.
func scriptOf(w *walker, redirs []*syntax.Redirect) (string, bool) {
	first := slices.IndexFunc(redirs, isInput)
	if first < 0 || slices.ContainsFunc(redirs[first+1:], isInput) {
		return "", false
	}
	switch r := redirs[first]; r.Op {
	case syntax.WordHdoc:
		word := w.word(r.Word)
		return word.Text + "\n", word.Static && !word.Home // a backslash at its end joins nothing to it
	case syntax.Hdoc, syntax.DashHdoc:
		return heredoc(r)
	}
	return "", false
}

// isInput reports whether a redirection gives a command its standard input.
func isInput(r *syntax.Redirect) bool {
	return strings.HasPrefix(r.Op.String(), "<") && (r.N == nil || r.N.Value == "0")
}

// leadingTabs matches what <<- takes away.
var leadingTabs = regular(`(?m)^\t+`)

// heredoc returns the body of a heredoc, and false if the body may not be what the command reads: it has expansions,
// or backslashes, which may join lines or escape $ and `.
func heredoc(r *syntax.Redirect) (string, bool) {
	if r.Hdoc == nil {
		return "", true
	}
	body := r.Hdoc.Lit()
	if r.Op == syntax.DashHdoc {
		body = leadingTabs().ReplaceAllString(body, "")
	}
	quoted := r.Word.Lit() == "" || strings.Contains(r.Word.Lit(), "\\")
	return body, body != "" && (quoted || !strings.Contains(body, "\\"))
}

// readBuiltin looks at the builtins of bash that run text, take names of variables,
// or change how later commands are found.
func readBuiltin(w *walker, c Simple) {
	operands := c.Args[1:]
	switch c.Name {
	case "cd", "pushd", "popd":
		w.out.Lost = w.out.Lost || c.Name == "popd"
	case "eval":
		if len(operands) > 0 && operands[0].Static && operands[0].Text == "--" {
			operands = operands[1:]
		}
		script := scriptWord(operands)
		w.out.Commands[w.current].transparent = script.Static
		w.textOf("eval", script, w.posix, w.funcs)
	case "trap":
		readTrap(w, c)
	case ".", "source":
		if len(operands) > 0 {
			w.obeys(operands[0])
		}
		w.startsByPurpose(true, "source runs a file in this shell")
	case "set", "shopt":
		readSet(w, c)
	case "alias", "enable", "hash", "bind", "complete", "compgen", "fc", "jobs", "let":
		prints := len(operands) == 0 || len(operands) == 1 && c.Name != "let" &&
			oneOf(operands[0].Text, "-p -r -a -l -rp -pr")
		if !prints {
			w.undecided(true, c.Name+" can run its words, or change what a name runs")
		}
	case "declare", "typeset", "local", "export", "readonly", "nameref":
		readDeclare(w, c)
	case "test", "[":
		readTest(w, c)
	default:
		readNames(w, c)
	}
}

// scriptWord joins words to the text that a shell is given.
func scriptWord(words []Word) Word {
	depends := func(word Word) bool { return !word.Static || word.Home }
	return Word{Text: join(words), Static: !slices.ContainsFunc(words, depends)}
}

// readTrap analyses the text that a signal will run.
func readTrap(w *walker, c Simple) {
	w.out.Commands[w.current].transparent = true
	p := spec{open: true}.parse(c.Args)
	if len(p.operands) > 0 && p.operands[0].Text != "-" { // else it prints, or resets signals
		w.textOf("trap", p.operands[0], w.posix, w.funcs)
	}
}

// readSet judges set and shopt: most options are harmless, some change how
// later text is read.
func readSet(w *walker, c Simple) {
	set := c.Name == "set"
	for i, word := range c.Args[1:] {
		letters := word.Static && word.Text != "" && strings.Contains("-+", word.Text[:1])
		switch {
		case set && word.Static && (oneOf(word.Text, "-- -") || i == 0 && !letters):
			return // positional parameters
		case !word.Static && (word.MayBeOption() || !set),
			letters && set && strings.ContainsAny(word.Text, "kHp"),
			word.Static && !letters && !listed("shell settings", word.Text):
			w.undecided(true, c.Name+" "+word.Text+" can change how later text is read")
		}
	}
}

// readNames judges the builtins that take names of variables. Bash evaluates the subscript of one, mapfile -C runs
// text, and unset -f takes away a function.
func readNames(w *walker, c Simple) {
	printf := c.Name == "printf" && len(c.Args) > 1 && (c.Args[1].MayBeOption() && !c.Args[1].Static ||
		strings.HasPrefix(c.Args[1].Text, "-v"))
	wait := c.Name == "wait" && slices.ContainsFunc(c.Args, func(w Word) bool { return strings.HasPrefix(w.Text, "-p") })
	if printf || wait {
		w.undecided(true, c.Name+" may set a variable")
	}
	if oneOf(c.Name, "printf wait") {
		return
	}
	for _, word := range c.Args[1:] {
		switch {
		case !word.Static || strings.Contains(word.Text, "[") || isOption(word.Text) && strings.ContainsAny(word.Text, "Cf"):
			w.undecided(true, c.Name+" "+word.Text+" may do more than set variables")
		case !isOption(word.Text):
			w.setsVariable(word.Text, "$")
		}
	}
}

// readTest judges the operators of test that take the name of a variable. A word
// that is not known could be one, which needs another such word, or one with a
// subscript, to do harm: `test $a $b`, `test $a 'x[$(cmd)]'`.
func readTest(w *walker, c Simple) {
	for i, word := range c.Args[1:] {
		switch {
		case i+2 >= len(c.Args):
			if i == 0 && !word.Static && !word.single {
				w.undecided(true, c.Name+" with a word that may be several: "+word.Text)
			}
		case word.Static && oneOf(word.Text, "-v -R"):
			w.variableName(c.Name+" "+word.Text, c.Args[i+2])
		case !word.Static && word.MayBeOption() && (!c.Args[i+2].Static || strings.Contains(c.Args[i+2].Text, "[")):
			w.undecided(true, c.Name+" with a word that may be -v: "+word.Text)
		}
	}
}
