package command

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// pythonModules are modules of Python that start no program, but by the functions
// that pythonStarts names.
const pythonModules = "json sys os re math datetime time collections itertools functools string random statistics hashlib base64 textwrap csv decimal fractions " +
	"struct uuid pathlib glob shutil tempfile io copy heapq bisect calendar html urllib xml tomllib configparser argparse enum pprint difflib fnmatch gzip zipfile " +
	"tarfile secrets unicodedata numbers contextlib ast binascii zlib bz2 lzma socket ipaddress " +
	"sqlite3 ssl threading traceback abc signal stat errno filecmp zoneinfo locale warnings queue email mimetypes platform sysconfig"

var (
	// pythonStarts are parts of the names of what starts a program, runs text as a
	// program, or reaches a function by a name that is made up.
	pythonStarts = regular(`system|popen|spawn|exec|fork|subprocess|startfile|posix|\bpty\b|ctypes|multiprocessing|asyncio|runpy|eval|compile|` +
		`getattr|globals|locals|vars|modules|importlib|import_|builtins|pickle|marshal|__|attrgetter|methodcaller|get_field|breakpoint|get_type_hints|load_ext|` +
		`FunctionType|LambdaType|CodeType|codeop|Compiler|bltns|(gi|cr|ag|f)_(code|frame|globals|builtins|locals)|co_[a-z]|tb_frame|[^\t\n -~]`)
	pythonImport = regular(`\b(?:from\s+(\w+)[\w.]*\s+import|import\s+(\w+[\w. \t,]*))`)
	pythonWord   = regular(`\b(?:import|from)\b`)
	// pythonVersion matches a program that shows one thing which modules hold. To import them is
	// no more than to run their files: import x; print(x.__version__).
	pythonVersion = regular(`^\s*import [a-zA-Z]\w*(\.[a-zA-Z]\w*)*( as [a-oq-z]\w*)?(, ?[a-zA-Z]\w*(\.[a-zA-Z]\w*)*)*\s*[;\n]\s*print\((['"][^'"\\\n]*['"](, ?))?[a-zA-Z]\w*(\.[a-zA-Z]\w*)*(\.__(version|file|name)__)?\)\s*$`)
)

// startsNothing reports whether a program in Python can start no other. It is
// searched as text, strings and comments included, and what is in doubt starts one.
func startsNothing(program string) bool {
	if pythonVersion().MatchString(program) && !strings.Contains(strings.ReplaceAll(program, ".__", ""), "__main") {
		return true
	}
	program = strings.NewReplacer("literal_eval", "", "re.compile", "").Replace(program)
	if pythonStarts().MatchString(program) || strings.Contains(program, "\\\n") {
		return false
	}
	words := len(pythonWord().FindAllString(program, -1))
	for _, found := range pythonImport().FindAllStringSubmatch(program, -1) {
		if words--; found[1] != "" {
			words-- // it has both words
		}
		for name := range strings.SplitSeq(found[1]+found[2], ",") {
			first := strings.FieldsFunc(name, func(r rune) bool { return r == ' ' || r == '\t' || r == '.' })
			if len(first) == 0 || !oneOf(first[0], pythonModules) {
				return false
			}
		}
	}
	return words == 0
}

// harmlessPython reports whether the command is Python with a program in its words or
// its heredoc that starts no other.
func (w *walker) harmlessPython(c Simple, stdin []*syntax.Redirect) bool {
	if !strings.HasPrefix(c.Name, "python") {
		return false
	}
	for i, word := range c.Args[1:] {
		switch {
		case !word.Static:
			return false
		case oneOf(word.Text, "-u -B -I -E -s"):
		case word.Text == "-c" && i+2 < len(c.Args):
			program := c.Args[i+2]
			return program.Static && startsNothing(program.Text)
		case word.Text == "-":
			program, ok := w.here(stdin)
			return ok && startsNothing(program)
		default:
			return false
		}
	}
	program, ok := w.here(stdin)
	return ok && startsNothing(program)
}

var (
	// perlReplaces matches a program that only replaces text; a replacement may hold
	// what the pattern caught.
	perlReplaces = regular("^(\\s*s(/([^/@`$]|\\$[0-9&])*/([^/@`$]|\\$[0-9&])*/|\\|([^|@`$]|\\$[0-9&])*\\|([^|@`$]|\\$[0-9&])*\\||#([^#@`$]|\\$[0-9&])*#([^#@`$]|\\$[0-9&])*#)[gimsx]*\\s*;?)+$")
	// perlDoubt is code in a pattern, code that chooses an element ($1[…] is one of the
	// array @1), and delimiters that are none.
	perlDoubt  = regular(`\([?*]|\$[0-9&]\s*(\[|\{|->)|\\[/|#]`)
	perlOption = regular(`^-[0-7pnlwi]*(\.\w+)?e?$`)
	// perlFinds matches a program that prints the lines that a pattern matches.
	perlFinds = regular("^\\s*print( if| unless)? *(m?/([^/@`$(]|\\$/)*/[gimsx]*)?\\s*;?\\s*$")
	// nodeShows matches a program that shows a value of a JSON file or of node.
	nodeShows = regular(`^\s*(console\.log\()?(JSON\.stringify\()?(require\(['"]\.{1,2}/[\w./-]+\.json['"]\)(\.\w+|\[['"][\w./@-]+['"]\])*|process\.(version|versions\.\w+|arch|platform))(, ?null, ?\d)?\)*\s*;?\s*$`)
)

// harmlessText reports whether a command is an interpreter with a program as text that
// starts no other.
func (w *walker) harmlessText(c Simple, stdin []*syntax.Redirect) bool {
	for _, word := range c.Args {
		if !word.Static && !word.Glob {
			return false
		}
	}
	switch c.Name {
	case "node", "nodejs":
		program, ok := w.nodeProgram(c, stdin)
		return ok && (nodeShows().MatchString(program) || computes(program))
	case "psql", "mysql", "mariadb":
		return harmlessQuery(c)
	case "perl":
		return harmlessPerl(c.Args[1:])
	}
	return w.harmlessPython(c, stdin)
}

// harmlessPerl reports whether perl -pe 's/a/b/' FILE is all that the words are. Perl
// takes a file name with a | or > at an end for a program.
func harmlessPerl(words []Word) bool {
	for i, word := range words {
		switch {
		case !word.Static || !perlOption().MatchString(word.Text):
			return false
		case strings.HasSuffix(word.Text, "e"):
			if i+1 == len(words) || !words[i+1].Static || perlDoubt().MatchString(words[i+1].Text) ||
				!perlReplaces().MatchString(words[i+1].Text) && !perlFinds().MatchString(words[i+1].Text) {
				return false
			}
			for _, file := range words[i+2:] {
				if strings.ContainsAny(file.Text, "|<>") || strings.HasPrefix(file.Text, "-") || file.Glob && strings.HasPrefix(file.Text, "*") {
					return false
				}
			}
			return true
		}
	}
	return false
}

// nodeProgram returns the program that node is given as text.
func (w *walker) nodeProgram(c Simple, stdin []*syntax.Redirect) (string, bool) {
	if len(c.Args) == 3 && oneOf(c.Args[1].Text, "-e -p -pe --eval --print") {
		return c.Args[2].Text, true
	}
	if len(c.Args) == 1 || len(c.Args) == 2 && c.Args[1].Text == "-" {
		return w.here(stdin)
	}
	return "", false
}

var (
	// scriptText matches the strings and numbers of JavaScript that hold nothing to be computed.
	scriptText = regular(`'[^'\\\n]*'|"[^"\\\n]*"|\b[0-9][0-9a-fA-FxX_.]*\b`)
	// scriptIndex matches what chooses an element, which is not where an array begins, and what takes an object
	// apart by a computed name.
	scriptIndex = regular(`[^\s(,=:\[?]\s*\[|\]\s*:`)
	scriptName  = regular(`[A-Za-z_$][\w$]*`)
)

// scriptNames are what a program in JavaScript may name that only computes and prints.
const scriptNames = "console log error JSON stringify parse Math max min round floor ceil abs sqrt pow random Date now new toISOString getTime Number String Boolean parseInt parseFloat toString toFixed " +
	"null true false undefined typeof const let var if else for of in return length join split map filter reduce sort reverse slice includes indexOf replace trim toUpperCase toLowerCase repeat padStart " +
	"a b c d e f g i j k l m n o p q r s t u v w x y z"

// computes reports whether a program in JavaScript names nothing by which it could start
// another. What it reaches by a computed name it could reach by any: there are no such. It is
// the names that are known which pass, also of properties: node -e has every module under its
// name, and by a function's constructor, which may stand in quotes, text becomes a program.
func computes(program string) bool {
	if program == "" || strings.Contains(program, "constructor") || strings.ContainsAny(program, "`\\#@") || strings.ContainsFunc(program, func(r rune) bool { return r > '~' }) {
		return false
	}
	rest := scriptText().ReplaceAllString(program, " 0 ")
	if strings.ContainsAny(rest, `'"/`) || scriptIndex().MatchString(rest) {
		return false
	}
	for _, name := range scriptName().FindAllString(rest, -1) {
		if !oneOf(name, scriptNames) {
			return false
		}
	}
	return true
}

// harmlessQuery reports whether a client of a database is given SQL alone, as text that
// none of its own commands is in.
func harmlessQuery(c Simple) bool {
	texts := 0
	for i, word := range c.Args[1:] {
		text := strings.ToLower(word.Text)
		switch {
		case !word.Static || strings.ContainsAny(text, "\\`\n|"):
			return false
		case i > 0 && oneOf(c.Args[i].Text, "-c --command -e --execute"):
			if texts++; clientCommand().MatchString(text) {
				return false
			}
		case !isOption(text), oneOf(text, "-c --command -e --execute -h -u -d -p --host --port --user --username --dbname --database -t -a -x -q -s -n"):
		default:
			return false
		}
	}
	return texts > 0
}

// clientCommand matches what makes a client of a database start a program or read a file.
var clientCommand = regular(`\b(system|program|pager|edit|tee|source|copy|outfile|infile|load_file|delimiter)\b`)
