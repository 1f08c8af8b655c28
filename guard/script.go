package guard

import (
	"io"
	"os"
	"slices"
	"strings"

	"toolhost/guard/internal/command"
)

// hidesIn reports whether one command, of those before which others stand, could run a
// program that the line does not name. A script that lies there already is looked
// into: one that names what rules deny hides it.
func (l *line) hidesIn(s command.Simple, before []command.Simple) bool {
	files, ok := s.Runs()
	if !ok {
		return true
	}
	if len(files) > 0 && slices.ContainsFunc(before, command.Simple.RunsText) {
		return true // it may have written the script
	}
	dirs := l.standsIn(s.Places)
	return slices.ContainsFunc(files, func(file command.Word) bool {
		targets := l.targets([]command.Word{file}, dirs, reading)
		return len(targets) == 0 || slices.ContainsFunc(targets, func(t target) bool { return l.hidesFile(t, before) })
	})
}

// hidesFile reports whether a script could run what the line does not name: the line
// itself may write it, or it names what rules deny.
func (l *line) hidesFile(t target, before []command.Simple) bool {
	if within(t.real, "/dev") || within(t.real, "/proc") || l.writesTo(t) {
		return true
	}
	f, err := openFile(t.path.real, os.O_RDONLY)
	if err != nil {
		// It does not run either, or something before it makes it, of which only a
		// virtual environment is known to hold nothing else.
		return len(before) > 0 && !strings.HasSuffix(t.real, "/bin/activate")
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return true
	}
	text, err := io.ReadAll(io.LimitReader(f, command.MaxLength))
	if err != nil {
		return true
	}
	for _, s := range command.Analyze(string(text)).Commands {
		if l.k.deny.commands.denies(s) != nil || l.k.ask.commands.denies(s) != nil {
			return true
		}
	}
	return false
}

// writesTo reports whether the line may write the file: a word says so, or it is not
// known what a word says.
func (l *line) writesTo(t target) bool {
	writes := slices.Clone(l.analysis.Writes)
	for _, s := range l.analysis.Commands {
		_, own := s.Paths()
		writes = append(writes, own...)
	}
	return slices.ContainsFunc(writes, func(w command.Word) bool {
		if w.Static && isStream(w.Text) {
			return false
		}
		if !w.Static && !w.Home {
			return true
		}
		return slices.ContainsFunc(l.targets([]command.Word{w}, l.dirs, writing), func(written target) bool {
			return within(t.real, written.real)
		})
	})
}
