package guard

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/command"
	"github.com/toolhost/toolhost/guard/internal/realpath"
)

// These programs load files that their arguments do not name in full: "node src" runs src/index.js, and "npm --prefix
// DIR start" runs what DIR/package.json says.
var (
	// launchers take programs from the directory that they start in. The number is how many operands precede the
	// arguments of the program: "uv run PROGRAM" has 2.
	launchers = map[string]int{
		"npx": 1, "bunx": 1, "pnpx": 1, "uvx": 1, "npm": 2, "pnpm": 2, "yarn": 2, "bun": 2, "deno": 2, "uv": 2, "pipx": 2,
	}
	// valued are the options of interpreters and launchers that take the next word as their value.
	valued = strings.Fields("--with --with-editable --from --python -p --package --extra --group --filter -w -W -X " +
		"--title")
)

// dataFiles are the suffixes of files that no program runs. A server may write those that its command line names.
var dataFiles = strings.Fields(".db .db3 .sqlite .sqlite3 .duckdb .csv .tsv .jsonl .parquet .log")

// isData reports whether the name of a file says that no program runs it.
func isData(name string) bool { return slices.Contains(dataFiles, strings.ToLower(filepath.Ext(name))) }

// unnamed returns an error if a program of the command line loads files of the boundary that the line does not name
// in full. Such files cannot be protected.
func (c HostCommand) unnamed(k *policyData) error {
	t := c.parse(k)
	for _, s := range t.analysis.Commands {
		at, ok := t.loads(s, t.runsIn(s.Led))
		switch {
		case !ok:
		case at.dir:
			return fmt.Errorf("it runs outside of the sandbox, and %s loads files of %s, where tools and commands can write, "+
				`without naming them: name the file that it runs by its absolute path, or give it another "cwd"`, s.Name, at.given)
		default:
			return fmt.Errorf("it runs outside of the sandbox, and %s is to run %s, where tools and commands can write: there "+
				"is no file of exactly this name", s.Name, at.given)
		}
	}
	return nil
}

// programName returns the name of a program without its version.
func programName(name string) string {
	return strings.TrimRight(strings.TrimSuffix(name, ".exe"), "0123456789.")
}

// loads returns the directory of the boundary from which a command loads files that its words do not name, or the
// missing file that it runs.
func (t *hostLine) loads(s command.Simple, dirs []Path) (at Path, ok bool) {
	name := programName(s.Name)
	operands, launcher := launchers[name]
	ends, runner := execKnown().runs[name]
	if !launcher && !runner {
		return Path{}, false
	}
	start, startsThere := t.inBoundary(".", dirs)
	if launcher && startsThere {
		return start, true
	}
	isValue := false // of an option
	for _, w := range s.Args[1:] {
		word := w.Text
		option := strings.HasPrefix(word, "-")
		switch {
		case option && runner && givesText(word, ends):
			return start, startsThere && strings.HasPrefix(name, "py") // modules are looked for there first
		case option && !strings.Contains(word, "="):
			isValue = slices.Contains(valued, word)
			continue
		case option:
			_, word, _ = strings.Cut(word, "=")
		}
		at, ok := t.inBoundary(word, dirs)
		if ok && (at.dir || !isValue && !realpath.Exists(at.real)) {
			return at, true
		}
		if !option && !isValue {
			if operands--; operands == 0 || t.isFile(word, dirs) {
				break // what follows is data of the program
			}
		}
		isValue = false
	}
	return Path{}, false
}

// givesText reports whether an option, or the last one of a group, is one of ends: a program or the name of a module
// follows it.
func givesText(option string, ends []string) bool {
	return slices.Contains(ends, option) ||
		!strings.HasPrefix(option, "--") && slices.Contains(ends, "-"+option[len(option)-1:])
}

// inBoundary returns the path that a word names where commands write, which need not exist.
func (t *hostLine) inBoundary(word string, dirs []Path) (Path, bool) {
	for _, dir := range dirs {
		if path, err := t.resolve(command.Word{Home: true}, word, dir); err == nil && t.exposed(path) {
			return path, true
		}
	}
	return Path{}, false
}

// isFile reports whether a word names a file.
func (t *hostLine) isFile(word string, dirs []Path) bool {
	return slices.ContainsFunc(dirs, func(dir Path) bool {
		path, ok := t.named(word, dir)
		return ok && !path.dir
	})
}
