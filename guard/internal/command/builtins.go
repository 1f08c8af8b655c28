package command

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// special looks at what the current command runs or changes by itself.
func (w *walker) special(stdin []*syntax.Redirect) {
	c := w.out.Commands[w.current]
	if defined, ok := w.funcs[c.Args[0].Text]; ok {
		w.out.Commands[w.current].Local = defined
	}
	switch {
	case isWrapper(c.Name):
		readWrapper(w, c, stdin)
	case oneOf(c.Name, shells):
		readShell(w, c, stdin)
	case listed("builtins", c.Name):
		readBuiltin(w, c)
	case oneOf(c.Name, "find gfind bfs"):
		readFind(w, c)
	case c.Name == "git":
		readGit(w, c)
	case oneOf(c.Name, "sed gsed "+awks):
		readScript(w, c)
	case c.Name == "tee":
		_, writes := c.Files()
		w.out.Writes = append(w.out.Writes, writes...)
	case isInterpreter(c.Name):
		readInterpreter(w, c, stdin)
	default:
		readStarter(w, c)
	}
}

const (
	shells = "bash sh dash ash rbash zsh ksh mksh fish csh tcsh"
	awks   = "awk gawk mawk nawk original-awk"
)

// readInterpreter says that an interpreter runs a text that is not read, unless it is only asked for its version.
func readInterpreter(w *walker, c Simple, stdin []*syntax.Redirect) {
	text := Simple{Args: c.Args[:min(3, len(c.Args))]} // with what it runs: FILE, or -c TEXT
	if len(c.Args) == 1 || c.Args[len(c.Args)-1].Text == "-" || text.Dynamic() {
		w.out.foreign = w.out.foreign || !slices.ContainsFunc(stdin, isInput)
	}
	if !asksVersion(c) {
		w.startsByPurpose(!interpretsFile(c), c.Name+" is an interpreter")
	}
}

// isInterpreter reports whether a program runs text in a language that this package does not read.
func isInterpreter(name string) bool {
	return listed("interpreters", strings.TrimRight(name, "0123456789."))
}

// interpretsFile reports whether an interpreter is given a file or a module to run, not text in its words: such a
// file is no more hidden than what make runs.
func interpretsFile(c Simple) bool {
	if len(c.Args) < 2 || !c.Args[1].Static || oneOf(strings.TrimRight(c.Name, "0123456789."),
		"gdb lldb sqlite duckdb psql mysql litecli mycli pgcli usql mongosh mongo") {
		return false
	}
	first := c.Args[1].Text
	switch {
	case first == "-m" && strings.HasPrefix(c.Name, "python"):
		return len(c.Args) > 2 && !oneOf(c.Args[2].Text, "timeit code pdb bdb asyncio idlelib IPython")
	case oneOf(c.Name, "bun deno"):
		return !slices.ContainsFunc(c.Args[1:],
			func(w Word) bool { return !w.Static || oneOf(w.Text, "-e -p --eval --print eval repl -") })
	}
	return strings.ContainsAny(first, "./") && !isOption(first) && !strings.HasPrefix(first, "/dev/") &&
		!strings.HasPrefix(first, "/proc/")
}

// asksVersion reports whether a command does nothing but print a version or a help text. Only listed programs count:
// many others take the same word and still run what they read.
func asksVersion(c Simple) bool {
	r, _ := recordOf("versions", strings.TrimRight(c.Name, "0123456789."))
	return len(c.Args) == 2 && c.Args[1].Static && r.flags[c.Args[1].Text]
}

// IsBuiltin reports whether bash runs a command of that name itself.
func IsBuiltin(name string) bool {
	return listed("builtins", name) || oneOf(name, "command builtin exec exit return break continue shift times umask "+
		"ulimit suspend logout let caller disown bg fg history echo true false : pwd kill test [ printf dirs")
}

// HasProgram reports whether the system has a program of the builtin's name as well.
func HasProgram(builtin string) bool { return oneOf(builtin, "kill echo true false pwd test [ printf") }
