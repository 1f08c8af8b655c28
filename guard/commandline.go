package guard

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/command"
	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/internal/realpath"
	"github.com/toolhost/toolhost/guard/internal/rules"
)

// A commandLine is the text of a command with the directories that its names are relative to.
type commandLine struct {
	data     *policyData
	text     string
	analysis *command.Analysis
	dirs     []Path   // where its words may be relative to: its directory and what it changes to
	led      [][]Path // where its first changes of directory lead one after another, if it has no others
	lost     bool     // it changes to a directory that is not known
}

func newCommandLine(k *policyData, text string, a *command.Analysis, dir Path) *commandLine {
	line := &commandLine{data: k, text: text, analysis: a, dirs: []Path{dir}}
	line.follow()
	return line
}

// lineOf returns the command line of a call, with the names that its commands see.
func (k *policyData) lineOf(c Exec) *commandLine {
	a := c.analysis()
	if c.Unsandboxed || !k.containment().Writes || k.excludes(a) { // they see the files that the host sees
		host := *k
		host.private = nil
		k = &host
	}
	return newCommandLine(k, c.Text, a, c.Dir)
}

// follow finds the directories that the line changes to. But for changes that the line begins with, each command is
// judged as if it ran in all of them.
func (ln *commandLine) follow() {
	ln.lost = ln.analysis.Lost
	led, moves, known := [][]Path{ln.dirs}, 0, !ln.lost
	for i, to := range ln.analysis.Lead {
		next, ok := ln.step(to, led[i])
		led = append(led, next)
		known = known && ok && to.Text != ""
	}
	for _, s := range ln.analysis.Commands {
		if s.Name != "cd" && s.Name != "pushd" {
			continue
		}
		moves++
		to := command.Word{Text: "~", Static: true, Home: true}
		if len(s.Args) > 1 {
			to = s.Args[len(s.Args)-1]
		}
		dirs, ok := ln.step(to, ln.dirs)
		ln.dirs = union(ln.dirs, dirs...)
		ln.lost = ln.lost || !ok
	}
	if known && moves == len(ln.analysis.Lead) {
		ln.led = led
	}
}

// runsIn returns the directories that a command or redirection may run in. led is as in
// [command.Simple].
func (ln *commandLine) runsIn(led int) []Path {
	if led > 0 && ln.led != nil {
		return ln.led[led-1]
	}
	return ln.dirs
}

// maxDirs bounds the directories that one line is followed into.
const maxDirs = 8

// step returns where a change of directory leads from each of dirs, and whether that is known.
// Bash takes ".." back along the names it came by, the kernel along the directories: both are
// examined.
func (ln *commandLine) step(to command.Word, dirs []Path) (next []Path, known bool) {
	if !to.Static && !to.Home || to.Text == "-" || len(dirs) > maxDirs {
		return nil, false
	}
	for _, dir := range dirs {
		p, err := ln.resolve(to, to.Text, dir)
		if err == nil {
			next = union(next, p)
			p, err = ln.data.resolve(dir, p.given)
		}
		if err != nil {
			return nil, false
		}
		next = union(next, p)
	}
	return next, true
}

// union appends the paths that are not yet in the list.
func union(list []Path, paths ...Path) []Path {
	for _, p := range paths {
		if !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}

// resolve resolves a word, or a part of it. "~" is the home directory only where
// the shell takes it so, and a command's own directory in /proc is not ours.
func (ln *commandLine) resolve(w command.Word, text string, dir Path) (Path, error) {
	if len(text) > realpath.MaxLength || strings.ContainsRune(text, 0) {
		return Path{}, fmt.Errorf("no file has such a name: %s", clip(text))
	}
	if rest, ok := strings.CutPrefix(text, inProject); ok && (rest == "" || rest[0] == '/') { // of a hook
		dir, text = pathOf(ln.data.roots[0]), "./"+rest
	}
	if !w.Home && strings.HasPrefix(text, "~") {
		text = "./" + text
	}
	for _, own := range []string{"/proc/self/cwd", "/proc/thread-self/cwd"} {
		if pathname.Within(text, own) {
			text = "." + text[len(own):]
		}
	}
	return ln.data.resolve(dir, text)
}

// variable matches a word that holds one variable: $x, ${x}, ${x:?why}.
var variable = regexp.MustCompile(`^([^$]*)\$(?:\{(\w+)(?::?[?-][^{}$]*)?\}|(\w+))([^$]*)$`)

// may returns literal words that an unread one may become: those with a literal value that the line gives a variable.
func (ln *commandLine) may(w command.Word) (words []command.Word) {
	parts := variable.FindStringSubmatch(w.Text)
	if w.Static || w.Home || w.Glob || parts == nil {
		return nil
	}
	values := ln.analysis.Values
	if parts[2]+parts[3] == "PWD" {
		values = []string{"."}
	}
	for _, value := range values {
		text := strings.ReplaceAll(parts[1]+value+parts[4], `"`, "")
		words = append(words, command.Word{Text: text, Static: true})
	}
	return words
}

// targets resolves words in each directory that the line may be in when it comes to them: literal ones, and written
// ones that may become literal, since no containment holds a rule on files that do not exist yet.
func (ln *commandLine) targets(words []command.Word, dirs []Path, access rules.Access) (out []*target) {
	for _, w := range words {
		if access == writing {
			out = append(out, ln.targets(ln.may(w), dirs, access)...)
		}
		if !w.Static && !w.Home || w.Text == "" || isStream(w.Text) {
			continue
		}
		for _, dir := range dirs {
			if p, err := ln.resolve(w, w.Text, dir); err == nil {
				out = append(out, newTarget(p, access, verbOf(access)))
			}
		}
	}
	return out
}
