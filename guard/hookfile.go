package guard

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/toolhost/toolhost/guard/internal/command"
	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/guard/settle"
)

// inProject is a plain word that stands for the project's directory in the text of a hook, whatever its name is.
const inProject = "/.hook-project"

// projectRef matches references to the project's directory in the text of a hook, and to the directory that it starts
// in.
var projectRef = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\$CLAUDE_PROJECT_DIR\b|\$\{CLAUDE_PROJECT_DIR(:?[-?][^}$` + "`" +
		`"]*)?\}|\$PWD\b|\$\{PWD\}|\$\(pwd\)`)
})

// homeRef matches references to the home directory at the beginning of a word.
var homeRef = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"?(\$HOME|\$\{HOME\})("?)/`) })

// hookCommand returns the command line of a hook.
func (k *policyData) hookCommand(h settings.Hook) HostCommand {
	line := HostCommand{Text: h.Command, Dir: k.roots[0].Given, hook: true}
	if h.Args != nil {
		line.Args = append([]string{h.Command}, h.Args...)
	}
	return line
}

// eachHook calls do for each hook that runs a command, and its command line.
func (k *policyData) eachHook(set *settings.Settings, do func(settings.Hook, HostCommand)) {
	for _, groups := range set.Hooks {
		for _, group := range groups {
			for _, h := range group.Hooks {
				if h.Type == "command" {
					do(h, k.hookCommand(h))
				}
			}
		}
	}
}

// holdHostFiles protects the files of the workspace that hooks and the command lines of the host run. Hooks that run
// outside of the sandbox are command lines of the host.
func (k *policyData) holdHostFiles(set *settings.Settings, s pathname.Spelling) {
	var held []pathname.Place
	k.eachHook(set, func(h settings.Hook, line HostCommand) {
		if h.Uncontained {
			k.hostCommands = append(k.hostCommands, line)
		} else {
			held = append(held, line.files(k)...)
		}
	})
	for _, line := range k.hostCommands {
		held = append(held, line.files(k)...)
	}
	held = slices.DeleteFunc(held, func(p pathname.Place) bool { return k.originals.Hold(pathname.Slashed(p.Real)) })
	k.hostFiles = pathname.PlacesOf(s, held...)
}

// hookFiles returns the files of the workspace that the words of a hook name and that decide what the hook does:
// programs, scripts of interpreters, and the files that these get as arguments. If other programs obey the directory
// of such a file anyway, as with .claude/hooks, the directory is in the list, because the file may load others from
// it.
func (t *hostLine) hookFiles() (held []pathname.Place) {
	add := func(w command.Word, dirs []Path, runs bool) (found bool) {
		if !w.Static && !w.Home {
			return false
		}
		text := w.Text
		if _, value, ok := strings.Cut(text, "="); ok && strings.HasPrefix(text, "-") {
			text = value
		}
		for _, dir := range dirs {
			path, ok := t.named(text, dir)
			if !ok || path.dir || !t.inWorkspace(path) || isData(path.given) || !runs && !isProgram(path) {
				continue
			}
			found = true
			for _, place := range t.withDirectory(path) {
				if !slices.Contains(held, place) {
					held = append(held, place)
				}
			}
		}
		return found
	}
	for _, s := range t.analysis.Commands {
		dirs := t.runsIn(s.Led)
		_, runs := execKnown().runs[programName(s.Name)]
		runs = runs || s.Name == "." || s.Name == "source"
		_, launches := launchers[programName(s.Name)]
		for i, w := range s.Args {
			own := add(w, dirs, i == 0 || runs || launches && i > 1 && filepath.Ext(w.Text) != "" &&
				s.Args[1].Text == "run")
			runs = runs || own && i == 0
		}
	}
	for _, w := range t.analysis.Reads {
		add(w, t.runsIn(w.Led), false)
	}
	return held
}

// withDirectory returns the place of a file. It adds the place of its directory if that is protected and holds only a
// part of what a client has in the workspace.
func (t *hostLine) withDirectory(path Path) []pathname.Place {
	all := []pathname.Place{{Given: path.given, Real: path.real}}
	dir := pathname.Place{Given: filepath.Dir(path.given), Real: filepath.Dir(path.real)}
	rel := strings.Trim(t.data.recursive(pathname.Slashed(dir.Real)), "/")
	if strings.Contains(rel, "/") && settle.ClassOf(rel) == settle.Held {
		all = append(all, dir)
	}
	return all
}

// isProgram reports whether a file can be executed. On a file system where every file can be, it reports false for
// files that are not programs.
func isProgram(path Path) bool {
	info, err := os.Stat(path.real)
	if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return false
	}
	f, err := path.Open()
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 4)
	n, _ := io.ReadFull(f, head) // it may be shorter
	return strings.HasPrefix(string(head[:n]), "#!") || string(head[:n]) == "\x7fELF"
}

// hookOutputs returns the files outside of the workspace that the texts of hooks have output written to, such as a log
// in the home directory: hooks can write them.
func (k *policyData) hookOutputs(set *settings.Settings) (files []string) {
	k.eachHook(set, func(_ settings.Hook, line HostCommand) {
		t := line.parse(k)
		for _, w := range t.analysis.Writes {
			if !w.Static && !w.Home || isStream(w.Text) {
				continue
			}
			for _, dir := range t.runsIn(w.Led) {
				path, err := t.resolve(w, w.Text, dir)
				if err != nil || path.dir || t.exposed(path) || k.isReserved(path) ||
					slices.Contains(files, path.real) {
					continue
				}
				if info, err := os.Stat(filepath.Dir(path.real)); err == nil && info.IsDir() {
					files = append(files, path.real)
				}
			}
		}
	})
	return files
}

// isReserved reports whether a file outside of the workspace is one that commands must not write even where a setting
// opens its directory.
func (k *policyData) isReserved(path Path) bool {
	real := pathname.Slashed(path.real)
	return k.isState(real) || k.secrets.Hold(real) || isSettingsFile(real) || inProtected(filepath.Base(real)) ||
		controlOf(k, k.controlNames).holds(path) ||
		strings.HasPrefix(real, "/dev/") || strings.HasPrefix(real, "/proc/") || strings.HasPrefix(real, "/sys/")
}

// HookOutputs returns the files outside of the workspace that hooks may write, if this is the policy of hooks. They
// need not exist.
func (c Commands) HookOutputs() []string { return slices.Clone(c.p.data.hookOutputFiles) }

// HookFiles returns the files of the workspace that a hook runs and that are protected for it, and why one that runs
// outside of the sandbox depends on others.
func (p *Policy) HookFiles(h settings.Hook) (held []string, depends error) {
	line := p.data.hookCommand(h)
	for _, place := range line.files(p.data) {
		held = append(held, place.Real)
	}
	slices.Sort(held)
	if h.Uncontained {
		depends = line.unnamed(p.data)
	}
	return slices.Compact(held), depends
}

// MayRunHook returns an error if a hook runs a file of the workspace outside of the sandbox that is new, or has changed
// since a person agreed to run it.
func (c Commands) MayRunHook(h settings.Hook) error {
	line := c.p.data.hookCommand(h)
	if h.Uncontained {
		return c.mayRun(line)
	}
	return nil
}

// hookText returns the text of a hook with plain words for the directories that its variables name.
func hookText(text string) string {
	text = projectRef().ReplaceAllLiteralString(text, inProject)
	return homeRef().ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasPrefix(found, `"`) && !strings.HasSuffix(found, `"/`) {
			return `~/"` // "$HOME/x" is ~/"x"
		}
		return "~/"
	})
}
