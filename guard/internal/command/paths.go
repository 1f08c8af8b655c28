package command

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Paths returns the operands that name files, for the programs whose words are
// understood; none for others. A word that is not static is returned too: which
// file it names is not known.
func (c Simple) Paths() (readsFrom, writesTo []Word) {
	if c.Name == "" || len(c.Args) == 0 {
		return nil, nil
	}
	switch c.Name {
	case "sed", "gsed":
		_, files, p := sedParse(c)
		if p.has("i in-place") {
			return files, files
		}
		return append(p.values("f file"), files...), nil
	case "awk", "gawk", "mawk", "nawk", "original-awk":
		_, files, p := awkParse(c)
		return append(p.values("f file E exec i include"), files...), nil
	case "find", "gfind", "bfs":
		return findPaths(c)
	case "git":
		return nil, gitPaths(c)
	case "tar", "gtar", "bsdtar":
		return tarPaths(c)
	case "curl", "wget":
		readsFrom, writesTo = tablePaths(c)
		return readsFrom, append(writesTo, fetchedFiles(c)...)
	}
	return tablePaths(c)
}

// tablePaths returns the operands that name files by what tables.txt says of the program.
func tablePaths(c Simple) (readsFrom, writesTo []Word) {
	p, ok := recordOf("programs", c.Name)
	if !ok {
		return nil, nil
	}
	args := p.parse(c.Args)
	intoDir := false
	for _, o := range args.options {
		if !o.has {
			continue
		}
		switch {
		case oneOf(o.name, p.lists["reads"]):
			readsFrom = append(readsFrom, o.value)
		case oneOf(o.name, p.lists["writes"]):
			writesTo = append(writesTo, o.value)
			intoDir = intoDir || oneOf(o.name, "t target-directory")
		}
	}
	files := args.operands
	switch {
	case p.flags["pattern"]:
		if !args.has(p.lists["instead"]) && len(files) > 0 {
			files = files[1:]
		}
		readsFrom = append(readsFrom, files...)
	case p.flags["reads"]:
		readsFrom = append(readsFrom, files...)
	case p.flags["writes"]:
		writesTo = append(writesTo, files...)
	case p.flags["in-place"]:
		readsFrom, writesTo = append(readsFrom, files...), append(writesTo, files...)
		for _, file := range files { // what is left of x.gz is x
			if i := strings.LastIndexByte(file.Text, '.'); i > 0 {
				writesTo = append(writesTo, Word{Text: file.Text[:i], Static: file.Static, Home: file.Home, single: file.single})
			}
		}
	case p.flags["settings"]:
		if !args.has("reference") && len(files) > 0 {
			files = files[1:]
		}
		writesTo = append(writesTo, files...)
	case p.is("in-out out-in"):
		for i, file := range files {
			if (i == 0) == p.flags["in-out"] {
				readsFrom = append(readsFrom, file)
			} else {
				writesTo = append(writesTo, file)
			}
		}
	case p.is("copies moves"):
		sources := files
		if !intoDir && len(files) > 0 {
			sources = files[:len(files)-1]
			writesTo = append(writesTo, files[len(files)-1])
		}
		readsFrom = append(readsFrom, sources...)
		if p.flags["moves"] {
			writesTo = append(writesTo, sources...)
		}
	}
	return readsFrom, writesTo
}

// fetchedFiles returns the files that curl and wget name after what they fetch, and those
// that a format of curl names: -w '%output{x}'.
func fetchedFiles(c Simple) (files []Word) {
	r, _ := recordOf("programs", c.Name)
	p := r.parse(c.Args)
	named := c.Name == "wget" && !p.has("O output-document") || p.has("O remote-name remote-name-all")
	for _, o := range p.options {
		_, rest, ok := strings.Cut(o.value.Text, "%output{")
		if name, _, closed := strings.Cut(rest, "}"); ok && closed && c.Name == "curl" {
			files = append(files, Word{Text: strings.TrimPrefix(name, ">>"), Static: o.value.Static, single: true})
		}
	}
	for _, word := range p.operands {
		name, _, _ := strings.Cut(word.Text, "?")
		if i := strings.LastIndexByte(name, '/'); named && i >= 0 && i+1 < len(name) {
			files = append(files, Word{Text: name[i+1:], Static: word.Static, single: word.single})
		}
	}
	return files
}

// findPaths returns the starting points of find: words before the first test.
// With -delete they are written to.
func findPaths(c Simple) (readsFrom, writesTo []Word) {
	for i := 1; i < len(c.Args); i++ {
		word := c.Args[i]
		if word.Static && oneOf(word.Text, "-H -L -P -O0 -O1 -O2 -O3") {
			continue
		}
		if word.Static && word.Text != "" && strings.IndexByte("-(!", word.Text[0]) >= 0 {
			break
		}
		readsFrom = append(readsFrom, word)
	}
	if len(readsFrom) == 0 {
		readsFrom = []Word{{Text: ".", Static: true, single: true}}
	}
	if c.Deletes() {
		writesTo = readsFrom
	}
	return readsFrom, writesTo
}

// OperandsUnknown reports whether the operands of a program may name files in ways that
// [Simple.Paths] does not know, besides the options that it does.
func (c Simple) OperandsUnknown() bool {
	p, _ := recordOf("programs", c.Name)
	return p.flags["none"] && !p.flags["looks"] || c.Name == "git"
}

// SearchesText reports whether the first operand of a program is no file: what
// such a program is given without one, it reads from its input.
func SearchesText(c Simple) bool { return listed("search text", c.Name) }

// givesMessage matches the options of git that take a message: -m, -am.
var givesMessage = regular(`^(--message|-\w*m)$`)

// leaveOut are options whose value is not examined.
const leaveOut = "--exclude --exclude-dir --ignore"

// Mentions returns every text among the arguments that could name a file for a
// program that is not known: the arguments themselves, what follows "=", "@" or
// an option letter in them (`--file=.env`, `-d @.env`, `-f.env`), and the parts
// of lists (`-v .env:/x`, `src=.env,dst=x`). A deny rule for a file can be held
// against these; what echo and printf print is left out.
func (c Simple) Mentions() []Word {
	if len(c.Args) < 2 || oneOf(c.Name, "echo printf") {
		return nil
	}
	out := make([]Word, 0, len(c.Args))
	words := c.Args[1:]
	if listed("has subcommands", c.Name) && words[0].Static && !strings.ContainsAny(words[0].Text, "./-") {
		words = words[1:] // npm test says what to do, and names no file
	}
	for i, word := range words {
		if option, _, _ := strings.Cut(word.Text, "="); oneOf(option, leaveOut) || i > 0 && oneOf(words[i-1].Text, leaveOut) {
			continue
		}
		if c.Name == "git" && i > 0 && strings.ContainsAny(word.Text, " \n") && givesMessage().MatchString(words[i-1].Text) {
			continue
		}
		if scheme, path, ok := strings.Cut(word.Text, "://"); ok && syntax.ValidName(scheme) {
			if scheme == "file" {
				out = append(out, Word{Text: path, Static: word.Static, single: word.single})
			}
			continue // an address
		}
		out = append(out, word)
		add := func(text string) {
			if text != "" && text != word.Text {
				out = append(out, Word{Text: text, Static: word.Static, Glob: word.Glob, Home: word.Static && strings.HasPrefix(text, "~/"), single: word.single})
			}
		}
		if _, value, ok := strings.Cut(word.Text, "="); ok {
			add(strings.TrimPrefix(value, "@"))
		}
		text := word.Text
		if len(text) > 2 && text[0] == '-' && text[1] != '-' {
			text = text[2:]
			add(text)
		}
		if strings.ContainsAny(text, ":,;@") && !strings.ContainsAny(text, " \t\n") {
			for piece := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune("=:,;@<", r) }) {
				add(piece)
			}
		}
	}
	return out
}
