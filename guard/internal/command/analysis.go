package command

import (
	"slices"
	"strings"
)

// An Analysis is what a command text may run, read and write.
type Analysis struct {
	// Commands holds every simple command, in order of appearance. A command
	// found inside another (behind sudo, in bash -c) follows it.
	Commands []Simple

	// Reads holds the targets of `<` redirections.
	Reads []Word

	// Writes holds the targets of `>`, `>>`, `2>`, `&>`, `>|`, `>&` and `<>`
	// redirections, and the operands of tee.
	Writes []Word

	// Globs holds the words with wildcards that are no words of a command: what a
	// loop goes over, the elements of an array, what a variable is given. The shell
	// may put file names in their place, here or where the variable is used.
	Globs []Word

	// Undecidable holds the reasons why Commands may be incomplete, or why a
	// listed command may do something else than its words say. Each is a phrase
	// for a person, and no phrase appears twice. Empty means decided.
	Undecidable []string

	// Partial is set when a part of the text was not looked at: it cannot be parsed, or
	// is too long, or runs too many commands. That part may read and write any file.
	Partial bool

	// Hiding is set when an undecidable form could run a program whose name is
	// not in Commands: a rule against that program cannot be relied on.
	Hiding bool

	// ChangesDir is set when the shell may move to another directory, so that a
	// relative path after that point need not be relative to the start.
	ChangesDir bool

	moves    int  // changes of directory, see itinerary
	followed int  // those of them that are understood
	lost     bool // some are not

	braceWords int // made by brace expansion so far, see maxBraceWords
	arrays     arrays
	values     map[string][]string // that the text gives its variables, see guess
	others     map[string]int      // how often variables are given other values too
	patterns   map[string][]Word   // those of these that are patterns of a loop: for f in *.go
}

// A Word is one argument, expanded as far as that needs nothing but the text.
type Word struct {
	// Text is the expanded value if Static, and the source of the word if not.
	Text string

	// Static reports whether Text is exactly what the program will be given
	// (but for the home directory, see Home).
	Static bool

	// Home reports that the shell puts the home directory in place of the
	// leading "~" of Text: `~/x`, and `$HOME/x`, which is given as "~/x".
	Home bool

	// Glob reports that the word is not static only because it is a pattern
	// that the shell replaces by file names; Text is the pattern.
	Glob bool

	// Wild reports that the shell replaces a pattern by file names which cannot be
	// told, because the word holds something unknown too: "$d"/*.
	Wild bool

	// Stream reports that the word is <(…), what a command of the text prints.
	Stream bool

	found  bool   // a file that find has found, or an item of a loop, which is no option
	given  bool   // what find or xargs puts in the place of this word, and nothing else
	name   string // of the variable whose value is all of the word
	array  bool   // name=(…) in a declaration
	single bool   // exactly one word when it runs
	prefix string // text every resulting word begins with, if known

	places  []Place    // of the command it stands beside, for a redirection
	guesses [][]string // words that this one may become, see guess
	from    []string   // the variables that the guesses come from; nil if there are more
}

// mayBeOption reports whether a program may take the word, or a part that it
// is split into, for an option.
func (w Word) mayBeOption() bool {
	if w.Static || w.found {
		return w.Static && len(w.Text) > 1 && w.Text[0] == '-'
	}
	return w.prefix == "" || w.prefix[0] == '-' || !w.single && !w.Glob
}

// Places are the directories that the word may be relative to if it is the target
// of a redirection; nil if that is not understood.
func (w Word) Places() []Place { return w.places }

// A Simple is one command that may run: a program and its words.
type Simple struct {
	// Name is the base name of the program ("rm" for /bin/rm), or "" when it is
	// not known before the command runs.
	Name string

	// Args holds the words; Args[0] is the program as given. A word that another
	// program supplies (xargs, find) is "{}" and not static.
	Args []Word

	// Assigns holds the names of the variables assigned for this command alone,
	// also those given to env and sudo.
	Assigns []string

	// Via names the wrappers the command was found behind, outermost first,
	// such as "sudo", "bash -c" or "sudo > xargs". It is "" for a command that
	// the text itself runs.
	Via string

	// Outer is the index in Analysis.Commands of the command that runs this
	// one, or -1.
	Outer int

	// Text is the words joined by single spaces, quotes and escapes resolved,
	// without assignments.
	Text string

	// Source is the command as it was written, assignments included, with
	// single spaces between its words and without redirections. Behind a
	// wrapper it is Text.
	Source string

	// Undecidable holds those reasons of the Analysis that come from this
	// command alone: what an allow rule for just this program would accept.
	Undecidable []string

	// Places are the directories the command may run in, as far as the text changes
	// them; nil if that is not understood, so that it may run in any of them.
	Places []Place

	variants    []string // other spellings a deny rule must see
	spellings   [][]Word // those of them that are told word by word
	transparent bool     // adds nothing to what the inner command does
	local       bool     // calls a function whose body is in the text
	moved       bool     // may run in another directory than the text started in
	input       string   // the source of the heredocs and here-strings it is given
	harmless    bool     // a program given as text that starts no other
	unsafeEnv   bool     // an assignment that no allow rule passes
	from        int      // 1 + the index of the command whose output it is piped
}

// Forms returns the texts that a deny or ask rule is matched against: as
// written, expanded, with the program's base name for its path, and with
// options left out that stand between a program and its subcommand
// (`git -C dir push` is also `git push`).
func (c Simple) Forms() []string {
	forms := append([]string{c.Text}, c.variants...)
	if c.Name != "" && len(c.Args) > 0 && c.Args[0].Text != c.Name {
		forms = append(forms, c.Name+strings.TrimPrefix(c.Text, c.Args[0].Text))
	}
	if c.Source != c.Text {
		forms = append(forms, c.Source)
	}
	return forms
}

// Deletes reports whether the command is a find that removes what it finds.
func (c Simple) Deletes() bool {
	return oneOf(c.Name, "find gfind bfs") && slices.ContainsFunc(c.Args, func(w Word) bool { return w.Text == "-delete" })
}

// Interprets reports whether all that is undecidable about the command is that
// its program runs text or a file of its own, or starts other commands, as it
// is made to: what an allow rule that names this program accepts.
func (c Simple) Interprets() bool {
	for _, reason := range c.Undecidable {
		what, ok := strings.CutPrefix(reason, c.Name+" ")
		if !ok || what != interprets && what != startsOthers && !strings.HasPrefix(what, runsFile) {
			return false
		}
	}
	return len(c.Undecidable) > 0
}

// RunsText reports whether the command is an interpreter with a program in the line,
// one that starts no other. It may write files.
func (c Simple) RunsText() bool { return c.harmless }

// Interpreted reports whether the command is an interpreter, whose words or input may hold
// a program.
func (c Simple) Interpreted() bool {
	return isInterpreter(c.Name) || oneOf(c.Name, "awk gawk mawk nawk")
}

// Runs returns the files that the command's shell reads commands from, and reports
// whether these, and files that interpreters run, are all that is undecidable about
// it: then it is no more hidden than make what it runs.
func (c Simple) Runs() (files []Word, ok bool) {
	for _, reason := range c.Undecidable {
		switch what, own := strings.CutPrefix(reason, c.Name+" "); {
		case own && what == interprets && (c.harmless || c.interpretsFile()):
		case own && strings.HasPrefix(what, runsFile):
			files = append(files, c.argument(what[len(runsFile):]))
		case reason == c.Name+suppliedOptions:
		case reason == sourcesFile && len(c.Args) > 1:
			files = append(files, c.Args[1])
		case SteersModules(reason):
		default:
			return nil, false
		}
	}
	return files, true
}

// SteersModules reports whether a reason says no more than where programs, or the
// modules of an interpreter, are looked for beside the usual places.
func SteersModules(reason string) bool {
	name, sets := strings.CutPrefix(reason, setsPrefix)
	return reason == growsPath || sets && oneOf(name, "PYTHONPATH NODE_PATH RUBYLIB PERL5LIB")
}

// GrowsPath reports whether the text adds a directory to those that programs are
// looked for in.
func (a *Analysis) GrowsPath() bool { return slices.Contains(a.Undecidable, growsPath) }

// TakesSupplied reports whether what xargs puts into the words of the command could be an
// option by which it starts a program, which [Simple.Runs] leaves to who knows the files.
func (c Simple) TakesSupplied() bool {
	return slices.Contains(c.Undecidable, c.Name+suppliedOptions)
}

// BesideScript returns the command without the file that its shell reads commands from: to name
// one there is no write of it.
func (c Simple) BesideScript() Simple {
	at := -1
	for _, reason := range c.Undecidable {
		if what, own := strings.CutPrefix(reason, c.Name+" "+runsFile); own {
			at = slices.IndexFunc(c.Args, func(w Word) bool { return w.Text == what })
		} else if reason == sourcesFile {
			at = 1
		}
	}
	if at > 0 && at < len(c.Args) {
		c.Args = slices.Concat(c.Args[:at], c.Args[at+1:])
	}
	return c
}

// argument returns the word with that text.
func (c Simple) argument(text string) Word {
	for _, word := range c.Args {
		if word.Text == text {
			return word
		}
	}
	return Word{Text: text}
}

// interpretsFile reports whether an interpreter is given a file or module, not text of
// the line.
func (c Simple) interpretsFile() bool {
	if len(c.Args) < 2 || !c.Args[1].Static {
		return false
	}
	switch c.Name {
	case "bun", "deno":
		if oneOf(c.Args[1].Text, "test install i add remove build pm update outdated lint fmt check task bench") {
			return true
		}
		if c.Args[1].Text == "run" && len(c.Args) > 2 && c.Args[2].Static && !isOption(c.Args[2].Text) {
			return true // a script of the package, or a file
		}
	case "node":
		if c.Args[1].Text == "--test" && !slices.ContainsFunc(c.Args[2:], func(w Word) bool { return !w.Static && !w.Glob || isOption(w.Text) }) {
			return true
		}
	case "gdb", "lldb", "psql", "mysql", "litecli", "mycli", "pgcli", "usql", "mongosh", "mongo": // the file is no program for them, other words are
		return false
	}
	if strings.HasPrefix(c.Name, "sqlite") || c.Name == "duckdb" {
		return c.queries()
	}
	if c.handsOnText() {
		return false
	}
	first := c.Args[1].Text
	if strings.HasPrefix(first, "/dev/") || strings.HasPrefix(first, "/proc/") {
		return false // its input, by another name
	}
	return !(len(first) > 1 && first[0] == '-') && (strings.ContainsAny(first, "./") || c.Name == "php" && first == "artisan") || first == "-m" && strings.HasPrefix(c.Name, "python") && !c.takesText()
}

// handsOnText reports whether a program in a file is given a program as text, as those do
// that manage a project: manage.py shell -c 'import os; …'.
func (c Simple) handsOnText() bool {
	for i, word := range c.Args[2:] {
		name, text, attached := strings.Cut(word.Text, "=")
		if !oneOf(name, "-c -e -r --eval --execute --code --command --exec --run") {
			continue
		}
		if !attached && i+3 < len(c.Args) {
			text = c.Args[i+3].Text
		}
		if strings.ContainsAny(text, "(`|;") {
			return true
		}
	}
	return false
}

// queries reports whether sqlite is given a database and SQL alone, none of which starts a
// program: its own commands begin with a dot.
func (c Simple) queries() bool {
	for i, word := range c.Args[1:] {
		text := strings.ToLower(word.Text)
		option := oneOf(text, "-json -csv -header -noheader -column -line -list -table -box -markdown -readonly -batch -bail")
		dotted := i > 0 && !oneOf(text, ".tables .schema .databases .indexes .dump .stats") && (strings.HasPrefix(strings.TrimSpace(text), ".") || strings.Contains(text, "\n"))
		if !word.Static || text != "" && text[0] == '-' && !option || dotted || strings.Contains(text, "edit(") || strings.Contains(text, "load_extension") {
			return false
		}
	}
	return len(c.Args) > 2 && !isOption(c.Args[len(c.Args)-1].Text)
}

func isOption(text string) bool { return text != "" && text[0] == '-' }

// takesText reports whether python -m starts a module that runs what its words or its
// input say, as -c does.
func (c Simple) takesText() bool {
	if len(c.Args) < 3 || !c.Args[2].Static {
		return true
	}
	module, _, _ := strings.Cut(c.Args[2].Text, ".")
	return oneOf(module, "timeit code pdb bdb asyncio idlelib IPython ptpython bpython xonsh ptipython jupyter_console")
}

// The reasons that are told apart from others.
const (
	sourcesFile = "source runs a file in this shell"
	growsPath   = "adds a directory to PATH"
	setsPrefix  = "sets "
)

// The reasons, after the name of the program, that lie in what it is for.
const (
	interprets      = "is an interpreter"
	suppliedOptions = ": what is put into its words may be an option"
	startsOthers    = "starts commands of its own"
	runsFile        = "runs a file: "
)

// Dynamic reports whether any argument is unknown before the command runs, so
// that a rule about arguments may miss what it looks for.
func (c Simple) Dynamic() bool {
	for _, w := range c.Args {
		if !w.Static {
			return true
		}
	}
	return false
}

// SafeAssigns reports whether only variables lead the command that cannot
// change which program runs or what it runs in turn, so that an allow rule for
// the command covers it.
func (c Simple) SafeAssigns() bool { return !c.unsafeEnv }
