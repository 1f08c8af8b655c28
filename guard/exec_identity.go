package guard

import (
	"bytes"
	_ "embed"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/toolhost/toolhost/guard/internal/command"
	"github.com/toolhost/toolhost/guard/internal/rules"
	"github.com/toolhost/toolhost/guard/sandbox/execgate"
)

//go:embed exec_programs.txt
var execPrograms string

// execTable is the table of programs.
type execTable struct {
	scripts map[string]string // file name of a script → the program that the script is
	parts   map[string]string // file name of a program → the one that it is a part of
	applets map[string]bool
	runs    map[string][]string // interpreter → options that mean that no script file follows
}

// execKnown reads the table once.
var execKnown = sync.OnceValue(func() execTable {
	t := execTable{scripts: map[string]string{}, parts: map[string]string{}, applets: map[string]bool{},
		runs: map[string][]string{}}
	for line := range strings.Lines(execPrograms) {
		switch f := strings.Fields(line); {
		case len(f) == 3 && f[0] == "script":
			t.scripts[f[1]] = f[2]
		case len(f) == 3 && f[0] == "part":
			t.parts[f[1]] = f[2]
		case len(f) == 2 && f[0] == "applets":
			t.applets[f[1]] = true
		case len(f) == 3 && f[0] == "runs":
			t.runs[f[1]] = strings.Split(f[2], ",")
		}
	}
	return t
})

// An identity collects the commands that a rule may call the start of one program: its arguments after each of its
// names.
type identity struct {
	rules  []*rules.Commands
	exec   *execgate.Exec
	roots  []string
	spoken [][]string
	inside []judged        // commands that files with many programs in them start without the kernel
	hiding []execgate.File // the files of that kind that may start further programs without the kernel
}

// A judged command is one that rules are matched with.
type judged struct {
	command.Simple
	in *execgate.File // the file that starts the command without the kernel, if one does
}

// commands returns what rules are matched with.
func (id *identity) commands() (all []judged) {
	for _, words := range id.spoken {
		all = append(all, judged{Simple: command.Argv(words)})
	}
	return append(all, id.inside...)
}

// wordsOf returns the words of a command.
func wordsOf(s command.Simple) (words []string) {
	for _, w := range s.Args {
		words = append(words, w.Text)
	}
	return words
}

// identify returns the commands that a start of a program is, as far as these rules may apply to them.
func identify(e *execgate.Exec, roots []string, rules ...*rules.Commands) *identity {
	id := &identity{rules: rules, exec: e, roots: roots}
	args := e.Args
	if len(args) == 0 {
		args = []string{path.Base(e.Path)}
	}
	id.file(0, e.Path, args)
	for i := 1; i < len(e.Files); i++ {
		name := e.Files[i].Name
		if option, ok := interpreterLine(e.Files[i-1]); ok {
			args = slices.Concat([]string{e.Files[i].Name}, option, []string{e.Path}, args[min(1, len(args)):])
		} else {
			if name, args = execgate.LoaderOperand(args); name == "" {
				break
			}
		}
		id.file(i, name, args)
	}
	return id
}

// file adds the names of the i-th file with the arguments args.
func (id *identity) file(i int, name string, args []string) {
	names := []string{path.Base(name), strings.TrimPrefix(path.Base(args[0]), "-")}
	real := ""
	if i < len(id.exec.Files) {
		real = id.exec.Files[i].Name
		names = append(names, path.Base(real))
		names = append(names, copyTargets(id.exec.Files[i], names, id.rules)...)
	}
	for _, n := range names {
		id.named(n, args)
	}
	id.multiCall(i, names, args)
	if id.byPath() {
		for _, p := range append(id.relative(name), real, args[0]) {
			id.add(append([]string{p}, args[1:]...))
		}
	}
}

// byPath reports whether a rule names a program by its path.
func (id *identity) byPath() bool {
	return slices.ContainsFunc(id.rules, (*rules.Commands).Names)
}

// relative returns the path of a program, and its paths relative to the working directory and the roots.
func (id *identity) relative(name string) []string {
	out := []string{name}
	for _, dir := range append([]string{id.exec.Dir}, id.roots...) {
		if rel, err := filepath.Rel(dir, name); err == nil && filepath.IsLocal(rel) {
			out = append(out, "./"+rel, rel)
		}
	}
	return out
}

// named adds the command under one name of its program.
func (id *identity) named(name string, args []string) {
	known := execKnown()
	if script := known.scripts[name]; script != "" {
		name = script
	}
	words := append([]string{name}, args[1:]...)
	id.add(words)
	if ends, ok := known.runs[family(name)]; ok {
		id.script(ends, words)
	}
}

// script adds the script that an interpreter runs, by its name. If an option may take the next argument as its value,
// the argument after that one is the script, provided that such a file exists.
func (id *identity) script(ends []string, words []string) {
	first := true
	for i := 1; i < len(words); i++ {
		w, before := words[i], words[i-1]
		if slices.Contains(ends, w) {
			return
		}
		if len(w) > 1 && (w[0] == '-' || w[0] == '+') {
			continue
		}
		id.operand(w, words[i+1:], first)
		if first = false; i == 1 || before == "--" || !strings.HasPrefix(before, "-") &&
			!strings.HasPrefix(before, "+") || strings.Contains(before, "=") {
			return
		}
	}
}

// operand adds the script of that name with its arguments.
func (id *identity) operand(name string, args []string, absent bool) {
	names := []string{path.Base(name)}
	if id.exec.Open != nil {
		f, err := id.exec.Open(name)
		if err != nil && !absent {
			return
		}
		if err == nil {
			names = append(names, path.Base(f.Name))
			names = append(names, copyTargets(f, names, id.rules)...)
			if f.Handle != nil {
				f.Handle.Close()
			}
		}
	}
	for _, n := range names {
		if n == "__main__.py" {
			n = path.Base(path.Dir(name))
		}
		if script := execKnown().scripts[n]; script != "" {
			n = script
		}
		id.add(append([]string{n}, args...))
	}
}

// add adds a command, once, if a rule may apply to its program.
func (id *identity) add(words []string) {
	if words[0] == "" || words[0] == "." || !slices.ContainsFunc(id.rules,
		func(c *rules.Commands) bool { return speaks(c, words) }) {
		return
	}
	if !slices.ContainsFunc(id.spoken, func(s []string) bool { return slices.Equal(s, words) }) {
		id.spoken = append(id.spoken, words)
	}
}

// speaks reports whether a rule may apply to a command, by its name or by another name that rules know.
func speaks(c *rules.Commands, words []string) bool {
	if c.Speaks(path.Base(words[0])) {
		return true
	}
	const enough = 16 // words that may name the program
	for _, s := range command.Argv(words[:min(len(words), enough)]).Spellings() {
		if c.Speaks(path.Base(s[0].Text)) {
			return true
		}
	}
	return false
}

// interpreterLine returns the option of the `#!` line of a file, and whether the file begins with such a line.
func interpreterLine(f execgate.File) (option []string, ok bool) {
	const longest = 256 // the kernel reads no more
	if f.Handle == nil {
		return nil, false
	}
	head := make([]byte, longest)
	n, _ := f.Handle.ReadAt(head, 0)
	line, ok := bytes.CutPrefix(head[:n], []byte("#!"))
	if !ok {
		return nil, false
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	_, rest, found := strings.Cut(strings.TrimSpace(string(line)), " ")
	if rest = strings.TrimSpace(rest); !found || rest == "" {
		return nil, true
	}
	return []string{rest}, true
}
