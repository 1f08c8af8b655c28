package command

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// readShell looks at what bash and its kin run: the text after -c, a script file,
// or standard input.
func readShell(w *walker, c Simple, stdin []*syntax.Redirect) {
	posix := false
	switch c.Name {
	case "sh", "dash", "ash":
		posix = true
	case "zsh", "ksh", "mksh", "fish", "csh", "tcsh":
		w.undecided(true, c.Name+" reads its script in another way than bash")
	}
	i, flags, ok := shellOptions(w, c)
	switch {
	case !ok:
		return
	case strings.Contains(flags, "n"):
		w.out.Commands[w.current].transparent = true
		if i < len(c.Args) && !strings.Contains(flags, "c") {
			w.out.Reads = append(w.out.Reads, c.Args[i]) // with -v it is shown, without it what it gets wrong
		}
	case strings.Contains(flags, "c"):
		if i < len(c.Args) {
			w.out.Commands[w.current].transparent = c.Args[i].Static
			w.textOf(c.Name+" -c", c.Args[i], posix, nil)
		}
	case i < len(c.Args) && !strings.Contains(flags, "s"):
		w.out.Reads = append(w.out.Reads, c.Args[i])
		w.undecided(true, c.Name+" "+runsFile+c.Args[i].Text)
	default:
		if script, ok := scriptOf(w, stdin); ok {
			w.out.Commands[w.current].transparent = true
			w.textOf(c.Name+" <<", Word{Text: script, Static: true}, posix, nil)
			return
		}
		w.undecided(true, c.Name+" runs what it reads from its standard input")
	}
}

// shellOptions returns the index of the first operand and the letters of the
// options before it. They may be clustered ("-euo pipefail -c"), and follow -c.
func shellOptions(w *walker, c Simple) (first int, flags string, ok bool) {
	i := 1
	for i < len(c.Args) {
		word := c.Args[i]
		if !word.Static {
			if word.MayBeOption() || strings.HasPrefix(word.prefix, "+") {
				w.undecided(true, c.Name+": a dynamic word stands where options are read: "+word.Text)
				return 0, "", false
			}
			break
		}
		text := word.Text
		switch {
		case text == "--" || text == "-":
			return i + 1, flags, true
		case text == "+": // an option without letters
		case strings.HasPrefix(text, "--"), listed("single dash", text):
			name := "--" + strings.TrimLeft(text, "-")
			if oneOf(name, "--help --version --dump-strings --dump-po-strings") {
				return 0, "", false
			}
			if oneOf(name, "--rcfile --init-file") {
				i++
			}
			if !oneOf(name, "--norc --noprofile --posix --verbose --login --restricted --noediting") {
				w.undecided(true, c.Name+" "+text)
			}
		case len(text) > 1 && (text[0] == '-' || text[0] == '+'):
			if text[0] == '-' {
				flags += text[1:]
			} else if strings.ContainsAny(text, "no") {
				flags = strings.ReplaceAll(flags, "n", "") // -n +n, -n +o noexec
			}
			if strings.ContainsAny(text, "ik") {
				w.undecided(true, c.Name+" "+text+" reads start-up files, or takes assignments anywhere")
			}
			i += strings.Count(text, "o") + strings.Count(text, "O") // each takes a word
		default:
			return i, flags, true
		}
		i++
	}
	return i, flags, true
}

// scriptOf returns the text of the only heredoc or here-string of a statement, if
// it does not depend on anything.
func scriptOf(w *walker, redirs []*syntax.Redirect) (string, bool) {
	var from *syntax.Redirect
	for _, r := range redirs {
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc, syntax.RdrIn, syntax.DplIn, syntax.RdrInOut:
			switch {
			case r.N != nil && r.N.Value != "0":
			case from != nil:
				return "", false
			default:
				from = r
			}
		}
	}
	switch {
	case from == nil:
		return "", false
	case from.Op == syntax.WordHdoc:
		word := w.word(from.Word)
		return word.Text + "\n", word.Static && !word.Home // a backslash at its end joins nothing to it
	case from.Op == syntax.Hdoc || from.Op == syntax.DashHdoc:
		return heredoc(from)
	}
	return "", false
}

// leadingTabs matches what <<- takes away.
var leadingTabs = regular(`(?m)^\t+`)

// heredoc returns the body of a heredoc without expansions.
func heredoc(r *syntax.Redirect) (string, bool) {
	if r.Hdoc == nil {
		return "", true
	}
	quoted := r.Word.Lit() == "" || strings.Contains(r.Word.Lit(), "\\")
	var b strings.Builder
	for _, part := range r.Hdoc.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			return "", false
		}
		b.WriteString(lit.Value)
	}
	body := b.String()
	if r.Op == syntax.DashHdoc {
		body = leadingTabs().ReplaceAllString(body, "")
	}
	if quoted {
		return body, true
	}
	// A backslash may join lines or escape $ and `; what is left is rare enough
	// not to be guessed at.
	return body, !strings.Contains(body, "\\")
}

// readBuiltin looks at the builtins of bash that run text, take names of variables,
// or change how later commands are found.
func readBuiltin(w *walker, c Simple) {
	operands := c.Args[1:]
	switch c.Name {
	case "cd", "pushd", "popd":
		w.moves()
	case "eval":
		readEval(w, operands)
	case "jobs": // jobs -x runs a command
		if slices.ContainsFunc(operands, func(word Word) bool { return !word.Static || strings.Contains(word.Text, "x") }) {
			w.undecided(true, "jobs with a word that may be -x")
		}
	case "trap":
		readTrap(w, operands)
	case ".", "source":
		if len(operands) > 0 {
			w.out.Reads = append(w.out.Reads, operands[0])
		}
		w.undecided(true, sourcesFile)
	case "set", "shopt":
		readSet(w, c)
		for _, word := range operands { // $1 may stand without quotes
			if word.Static && strings.ContainsAny(word.Text, "*?[") {
				word.Static, word.Glob = false, true
				w.out.Globs = append(w.out.Globs, word)
			}
		}
	case "alias", "enable", "hash", "bind", "complete", "compgen", "fc":
		if len(operands) > 0 && !(len(operands) == 1 && oneOf(operands[0].Text, "-p -r -a")) {
			w.undecided(true, c.Name+" can change what a name runs")
		}
	case "declare", "typeset", "local", "export", "readonly", "nameref":
		readDeclare(w, c)
	case "let":
		for _, word := range operands {
			if !word.Static || strings.Trim(word.Text, "0123456789+-*/%() ") != "" {
				w.undecided(true, "a variable in arithmetic, whose value bash evaluates")
			}
		}
	default:
		readNames(w, c)
	}
}

// relinks are the programs that put another directory in the place of one.
const relinks = "ln gln mv cp mount rsync tar bsdtar unzip cpio"

// rewires are the builtins after which cd may be something else than cd.
const rewires = ". source alias enable"

// moves notes a change of directory. Where it leads is not known if a command before
// it may have put a link there, or if cd looks in other places than its operand says.
func (w *walker) moves() {
	w.out.ChangesDir = true
	w.out.moves++
	w.out.lost = w.out.lost || strings.Contains(w.text, "CDPATH") || strings.Contains(w.text, "cdable_vars")
	for _, c := range w.out.Commands {
		w.out.lost = w.out.lost || oneOf(c.Name, relinks) || oneOf(c.Name, rewires)
	}
}

// readEval analyses the text that eval is given.
func readEval(w *walker, operands []Word) {
	if len(operands) > 0 && operands[0].Static && operands[0].Text == "--" {
		operands = operands[1:]
	}
	script := scriptWord(operands)
	w.out.Commands[w.current].transparent = script.Static
	w.textOf("eval", script, w.posix, w.funcs)
}

// scriptWord joins words to the text that a shell is given.
func scriptWord(words []Word) Word {
	depends := func(word Word) bool { return !word.Static || word.Home }
	return Word{Text: join(words), Static: !slices.ContainsFunc(words, depends)}
}

// readTrap analyses the text that a signal will run.
func readTrap(w *walker, operands []Word) {
	w.out.Commands[w.current].transparent = true
	if len(operands) > 0 && operands[0].Static && operands[0].Text == "--" {
		operands = operands[1:]
	} else if len(operands) > 0 && operands[0].Static && oneOf(operands[0].Text, "-p -l -P") {
		return
	}
	if len(operands) < 2 || operands[0].Static && oneOf(operands[0].Text, "- 0 1 2 3 15") {
		if len(operands) == 1 && !operands[0].Static {
			w.undecided(true, "trap of dynamic text")
		}
		return
	}
	w.textOf("trap", operands[0], w.posix, w.funcs)
}

// readSet judges set and shopt: most options are harmless, some change how
// later text is read.
func readSet(w *walker, c Simple) {
	for i := 1; i < len(c.Args); i++ {
		word := c.Args[i]
		if c.Name == "set" && word.Static && oneOf(word.Text, "-- -") {
			return
		}
		switch {
		case !word.Static:
			if word.MayBeOption() || c.Name == "shopt" {
				w.undecided(true, c.Name+" with a dynamic option")
			}
		case word.Text != "" && (word.Text[0] == '-' || word.Text[0] == '+'):
			if c.Name == "set" && strings.ContainsAny(word.Text, "kHap") {
				w.undecided(true, "set "+word.Text+" changes how later words are read, or exports them")
			}
		case c.Name == "set" && i == 1:
			return // positional parameters
		case !listed("shell settings", word.Text):
			w.undecided(true, c.Name+" "+word.Text+" can change how later text is read")
		}
	}
}

// readNames judges the builtins that take names of variables.
func readNames(w *walker, c Simple) {
	const of = " of a variable"
	switch {
	case c.Name == "test" || c.Name == "[":
		readTest(w, c)
		return
	case c.Name == "getopts" && len(c.Args) > 2:
		setsNamed(w, c.Name+of, c.Args[2])
		return
	}
	r, _ := recordOf("variable names", c.Name)
	p := spec{short: r.lists["short"], open: true}.parse(c.Args)
	for _, value := range p.values(r.lists["by"]) {
		setsNamed(w, c.Name+of, value)
	}
	if p.has("C") || c.Name == "unset" && p.has("f") {
		w.undecided(true, c.Name+" runs a callback, or takes away a function")
	}
	if c.Name == "printf" && len(c.Args) > 1 && !c.Args[1].Static && c.Args[1].MayBeOption() {
		w.undecided(true, "printf with a format that may be -v")
	}
	if r.flags["operands"] {
		for _, word := range p.operands {
			setsNamed(w, c.Name+of, word)
		}
	}
}

// setsNamed judges a word that names a variable to be set.
func setsNamed(w *walker, of string, word Word) {
	w.variableName(of, word)
	if word.Static {
		w.setsVariable(word.Text, "$")
		mayHoldOther(w, word.Text)
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
