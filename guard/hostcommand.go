package guard

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/hostprogram"
	"github.com/toolhost/toolhost/guard/internal/command"
	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/settings"
)

// A HostCommand is a command line of the user's settings that the host runs outside of any sandbox: a server with
// "sandbox": false, a headersHelper, a command of web.search, a hook with "contained": false. The files of the
// workspace that it names are protected.
type HostCommand struct {
	// Args are the path of the program and its arguments. Nil: a shell reads Text.
	Args []string
	Text string
	// Dir is the directory that it starts in, absolute.
	Dir string

	hook bool // the words of a hook: only those that decide what it does name files
}

// searchCommands returns the commands of web.search.
func searchCommands(entries []settings.Entry, home string) (all []HostCommand) {
	for _, e := range entries {
		var provider struct{ Command string }
		if json.Unmarshal([]byte(e.Text), &provider) == nil && provider.Command != "" {
			all = append(all, searchCommand(provider.Command, home))
		}
	}
	return all
}

// searchCommand returns a command of web.search, which starts in the home directory.
func searchCommand(text, home string) HostCommand {
	return HostCommand{Text: text, Dir: cmp.Or(home, "/")}
}

// text returns the command line as a shell reads it, with the variables of this process.
func (c HostCommand) text() string {
	expand := os.ExpandEnv
	if c.hook {
		expand = hookText
	}
	if c.Args == nil {
		return expand(c.Text)
	}
	words := make([]string, len(c.Args))
	for i, arg := range c.Args {
		words[i] = command.Quote(expand(arg))
	}
	return strings.Join(words, " ")
}

// parse analyzes the command line.
func (c HostCommand) parse(k *policyData) *hostLine {
	dir := pathOf(pathname.Place{Given: c.Dir, Real: c.Dir})
	if real, err := filepath.EvalSymlinks(c.Dir); err == nil {
		dir.real = real
	}
	return &hostLine{newCommandLine(k, c.text(), command.Analyze(c.text()), dir)}
}

// files returns the existing files of the boundary that the command line names or finds in PATH, and the interpreters
// there that the files name in turn. A word counts in the directory that its command runs in, and a piece of it too.
// Files of data are left out.
func (c HostCommand) files(k *policyData) (held []pathname.Place) {
	t := c.parse(k)
	if c.hook {
		return t.hookFiles()
	}
	add := func(piece string, dir Path) (real string) {
		path, ok := t.named(piece, dir)
		if !ok || path.dir || isData(path.given) {
			return ""
		}
		place := pathname.Place{Given: path.given, Real: path.real}
		if (t.inWorkspace(path) || k.originals.Hold(pathname.Slashed(path.real))) && !slices.Contains(held, place) {
			held = append(held, place)
		}
		return path.real
	}
	program := func(name string, dir Path) {
		if real := add(name, dir); real != "" {
			for _, name := range hostprogram.Interpreters(real) {
				add(name, dir)
			}
		}
	}
	all := func(word string, dirs []Path) {
		for piece := range pieces(word) {
			for _, dir := range dirs {
				program(piece, dir)
			}
		}
	}
	for _, s := range t.analysis.Commands {
		if s.Name != "" && !strings.Contains(s.Args[0].Text, "/") {
			program(hostprogram.InPath(s.Name), t.dirs[0])
		}
		for _, w := range s.Args {
			all(w.Text, t.runsIn(s.Led))
		}
	}
	for _, word := range append(slices.Clone(c.Args), c.text()) {
		all(word, t.dirs)
	}
	return held
}

// MayRun returns an error if the command line names a file of the boundary that has changed since a person agreed to
// run it, or loads files there that it does not name. The files of a new command line count as agreed to, because a
// person has just written it.
func (c Commands) MayRun(line HostCommand) error {
	if err := c.mayRun(line); err != nil {
		return err
	}
	return line.unnamed(c.p.data)
}

// mayRun is MayRun for the files that the line names.
func (c Commands) mayRun(line HostCommand) error {
	k := c.p.data
	var files []string
	for _, place := range line.files(k) {
		// Commands cannot change the content of a protected directory.
		if info, err := os.Stat(place.Real); err != nil || !info.IsDir() {
			files = append(files, place.Given)
		}
	}
	text := fmt.Sprintf("%q %q %q", line.Args, line.Text, line.Dir)
	changed, err := settings.CheckFiles(settings.Config{StateDir: k.stateDir}, text, files)
	if err != nil {
		return fmt.Errorf("the files that it runs cannot be compared with those that a person agreed to: %w", err)
	}
	if len(changed) == 0 {
		return nil
	}
	return fmt.Errorf("it runs outside of the sandbox, and these files of it are new or have changed since a person "+
		"agreed to them: %s. Ask the user to review them and to run: toolhost trust %s", strings.Join(changed, ", "), command.Quote(changed[0]))
}

// MaySearch is MayRun for a command of web.search.
func (c Commands) MaySearch(text string) error {
	return c.MayRun(searchCommand(text, c.p.data.home.Real))
}

// CheckHostCommands compares the files of all command lines of the host with what a person agreed to, and returns what
// is wrong. A host calls it when it starts: a file that is planted later is then known to be new.
func (c Commands) CheckHostCommands() (problems []error) {
	for _, line := range c.p.data.hostCommands {
		err := c.mayRun(line)
		if err == nil && !line.hook { // a person chose that such hooks run outside of the sandbox
			err = line.unnamed(c.p.data)
		}
		if err != nil {
			name, _, _ := strings.Cut(line.Text, " ")
			if line.Args != nil {
				name = line.Args[0]
			}
			// Not the command line itself: its other words may hold tokens.
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
		}
	}
	return problems
}

// Agreed records that a person has agreed to the content of a file, by approving its writing. It does nothing for files
// that no command line of the host names.
func (c Commands) Agreed(path Path) error {
	k := c.p.data
	for _, line := range k.hostCommands {
		for _, place := range line.files(k) {
			if place.Real != path.real {
				continue
			}
			review, err := settings.InspectFile(settings.Config{StateDir: k.stateDir}, place.Given)
			if err == nil {
				err = review.Trust()
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// distrust keeps the host from running programs that tools or commands can write: it finds no program of PATH below
// these places.
func distrust(k *policyData) {
	hostprogram.Distrust(k.stateDir)
	for _, name := range slices.Concat(k.inside.Names, k.originals.Names) {
		hostprogram.Distrust(pathname.Native(name))
	}
	hostprogram.Distrust(k.files.writable...)
}
