package guard

import (
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"toolhost/guard/internal/command"
	"toolhost/guard/internal/pathname"
	"toolhost/guard/internal/realpath"
)

// hidesIn reports whether one command, of those before which others stand, could run a
// program that the line does not name. A script that lies there already is looked
// into: one that names what rules deny hides it.
func (l *line) hidesIn(s command.Simple, before []command.Simple) bool {
	files, ok := s.Runs()
	if !ok || s.TakesSupplied() && !l.suppliedPlain(s) {
		return true
	}
	if len(files) > 0 && slices.ContainsFunc(before, command.Simple.RunsText) {
		return true // it may have written the script
	}
	dirs := l.standsIn(s.Places)
	return slices.ContainsFunc(files, func(file command.Word) bool {
		targets := l.targets([]command.Word{file}, dirs, reading)
		return len(targets) == 0 || slices.ContainsFunc(targets, func(t *target) bool { return l.hidesFile(t, before, false) })
	})
}

// maxScripts bounds how many scripts are looked into that scripts run.
const maxScripts = 100

// again reports whether a script was looked into already, and whether these are too many
// by now.
func (l *line) again(t *target) (known, many bool) { return l.againAs(t.real) }

func (l *line) againAs(key string) (known, many bool) {
	if l.scripts[key] {
		return true, false
	}
	l.scripts[key] = true
	return false, len(l.scripts) > maxScripts
}

// hidesFile reports whether a script could run what the line does not name: the line
// itself may write it, or it names what rules deny. An inner one is run by a script.
func (l *line) hidesFile(t *target, before []command.Simple, inner bool) bool {
	if pathname.Within(t.real, "/dev") || pathname.Within(t.real, "/proc") || l.writesTo(t) {
		return true
	}
	f, err := realpath.OpenSmall(t.path.real)
	if errors.Is(err, realpath.ErrKind) {
		return true
	}
	if err != nil {
		// It does not run either, or something before it makes it, of which only a
		// virtual environment is known to hold nothing else.
		return len(before) > 0 && !strings.HasSuffix(t.real, "/bin/activate")
	}
	defer f.Close()
	if inner {
		if known, many := l.again(t); known || many {
			return many
		}
	}
	text, err := io.ReadAll(io.LimitReader(f, maxScript+1))
	return err != nil || l.namesRuled(string(text))
}

// maxScript is the size of the largest script that is looked into, in bytes.
const maxScript = 1 << 20

// namesRuled reports whether a script names a command that rules deny or ask for, or
// is too large to tell.
func (l *line) namesRuled(script string) bool {
	switch {
	case len(script) > maxScript:
		return true
	case len(script) <= command.MaxLength:
		return l.ruled(command.Analyze(script))
	}
	// Larger ones are taken line by line, each without what it is the middle of.
	script = strings.ReplaceAll(script, "\\\n", "")
	for text := range strings.Lines(script) {
		text = strings.TrimSpace(text)
		for {
			word, rest, more := strings.Cut(text, " ")
			if !more || !strings.Contains(" if then else elif while until do ! { ( ", " "+word+" ") {
				break
			}
			text = strings.TrimSpace(rest)
		}
		if text != "" && text[0] != '#' && l.ruled(command.Analyze(text)) {
			return true
		}
	}
	return false
}

// ruled reports whether rules speak of a command of a script, or of a script that it runs
// in turn, as far as it says so. Which directory it is in by then is not followed.
func (l *line) ruled(a *command.Analysis) bool {
	return slices.ContainsFunc(a.Commands, func(s command.Simple) bool {
		for _, list := range []list{l.k.deny, l.k.ask} {
			if r, maybe := list.Commands.Denies(s); r != nil || maybe != nil {
				return true
			}
		}
		if _, ok := l.taskRuns(s); ok {
			return true
		}
		files, _ := s.Runs()
		return slices.ContainsFunc(l.targets(files, l.dirs, reading), func(t *target) bool { return realpath.Exists(t.real) && l.hidesFile(t, nil, true) }) ||
			l.hidesIt(s, l.dirs, true)
	})
}

// hidesOwn reports whether a command is a shell script, started by its path as
// ./build.sh, that hides a program as one given to a shell does. A program of another
// kind is no more hidden than make.
func (l *line) hidesOwn(s command.Simple) bool { return l.hidesIt(s, l.standsIn(s.Places), false) }

func (l *line) hidesIt(s command.Simple, dirs []Path, inner bool) bool {
	name := s.Args[0]
	if !name.Static && !name.Home || !strings.Contains(name.Text, "/") && !l.analysis.GrowsPath() {
		return false // with more directories in PATH it may be one of those here
	}
	for _, t := range l.targets([]command.Word{name}, dirs, reading) {
		if l.writesTo(t) {
			return true
		}
		f, err := realpath.OpenSmall(t.path.real)
		if err != nil {
			continue // it does not run, or a compiler before it makes it
		}
		head := make([]byte, 256)
		n, _ := io.ReadFull(f, head)
		f.Close()
		if isShellScript(string(head[:n])) && l.hidesFile(t, nil, inner) {
			return true
		}
	}
	return false
}

// isShellScript reports whether a shell runs a file that begins so.
func isShellScript(head string) bool {
	if strings.ContainsRune(head, 0) {
		return false
	}
	first, _, _ := strings.Cut(head, "\n")
	first, ok := strings.CutPrefix(first, "#!")
	if !ok {
		return true // the shell that starts it runs it itself
	}
	for word := range strings.FieldsSeq(first) {
		switch word = path.Base(word); {
		case word == "env" || strings.HasPrefix(word, "-") || strings.Contains(word, "="):
		default:
			return slices.Contains([]string{"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "rbash", "busybox"}, word)
		}
	}
	return true
}

// writesTo reports whether the line may write the file: a word says so, or it is not
// known what a word says.
func (l *line) writesTo(t *target) bool {
	writes := slices.Clone(l.analysis.Writes)
	for _, s := range l.analysis.Commands {
		switch s.Name {
		case "chmod", "chown", "chgrp", "touch", "mkdir": // what it holds stays
			continue
		}
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
		return slices.ContainsFunc(l.targets([]command.Word{w}, l.dirs, writing), func(written *target) bool {
			return pathname.Within(t.real, written.real)
		})
	})
}
