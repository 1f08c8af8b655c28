package guard

import (
	"fmt"
	"io/fs"
	"path/filepath"

	"toolhost/guard/internal/command"
	"toolhost/guard/internal/pathname"
	"toolhost/guard/internal/realpath"
	"toolhost/guard/internal/rulebook"
)

// asking asks for commands that come by themselves to files that a Read rule asks for:
// grep -r, tar, cp -r, what find or a list hands to another program. What a program does
// of which the line says nothing, such as a script, is not seen here. Where nothing
// contains commands they come to what is denied in the same way.
func (l *line) asking() {
	if !l.contained() {
		l.descending(l.k.deny)
	}
	l.descending(l.k.ask)
}

func (l *line) descending(rules list) {
	if rules.Read.Empty() {
		return
	}
	left := maxFollowed
	for _, s := range l.analysis.Commands {
		starts, takes, dirs := l.descent(s)
		for _, start := range known(starts) {
			for _, dir := range dirs {
				if part, ok := l.ruledBelow(rules, s, start, dir, takes, &left); ok {
					l.add(part)
					return
				}
			}
		}
	}
}

// known returns words with what the line says of them in place of those that are not known
// before it runs.
func known(words []command.Word) (out []command.Word) {
	for _, w := range words {
		if w.Static || w.Home || w.Glob {
			out = append(out, w)
			continue
		}
		for _, text := range w.Guesses() {
			out = append(out, command.Word{Text: text, Static: true})
		}
	}
	return out
}

// descent returns where a command begins to look for files, which of them it takes, and
// the directories that it may stand in.
func (l *line) descent(s command.Simple) (starts []command.Word, takes func(name string, dir bool) bool, dirs []Path) {
	if starts, names, ok := s.Descends(); ok {
		return starts, names.Takes, l.standsIn(s.Places)
	}
	lister, _, ok := l.lister(s)
	if !ok || !readsSupplied(s) {
		return nil, nil, nil
	}
	starts, match, ok := lister.Lists()
	if !ok {
		starts, match = []command.Word{{Text: ".", Static: true}}, func(string, bool) bool { return true }
		if reads, _ := lister.Paths(); len(reads) > 0 && (lister.Name == "find" || lister.Name == "gfind") {
			starts = reads
		}
	}
	return starts, func(name string, dir bool) bool { return dir || match(name, false) }, l.standsIn(lister.Places)
}

// readsSupplied reports whether a command may read what find or xargs puts into its words.
func readsSupplied(s command.Simple) bool {
	switch s.Name {
	case "rm", "ls", "echo", "printf", "basename", "dirname", "realpath", "chmod", "chown", "touch", "rmdir", "stat", "test", "du", "mkdir", "true":
		return false
	}
	return true
}

func (l *line) ruledBelow(rules list, s command.Simple, start command.Word, dir Path, takes func(string, bool) bool, left *int) (Part, bool) {
	names := []string{start.Text}
	if start.Glob {
		names, _ = l.expand(start, dir)
	}
	for _, name := range names {
		p, err := l.resolve(start, name, dir)
		if err != nil || !p.dir {
			continue // a file is judged by itself
		}
		r, found := l.k.findRuled(rules, p.real, takes, left)
		switch {
		case r != nil:
			return Part{What: "run " + s.Text, Action: rules.action, Rule: r.Text, Source: r.Source, Firm: true,
				Reason: fmt.Sprintf("The command %s comes to %s, which is %s by a rule.", clip(s.Text), l.shown(found), ruled(rules.action)),
				Remedy: "Leave the file out (--exclude), name other files or directories, or use Grep, which leaves it out."}, true
		case *left < 0:
			return Part{What: "run " + s.Text, Action: Ask, Rule: RuleUndecidable, Source: builtIn, Firm: true,
				Reason: fmt.Sprintf("The command %s goes through more files than are looked at, and rules speak of some.", clip(s.Text)),
				Remedy: "Name a smaller directory, or use Grep."}, true
		}
	}
	return Part{}, false
}

// shown is a path as it lies in a root.
func (l *line) shown(name string) string {
	for _, root := range l.k.roots {
		if rest, err := filepath.Rel(root.Real, name); err == nil && filepath.IsLocal(rest) {
			return rest
		}
	}
	return name
}

// findRuled returns a rule on a file below a directory, and the file.
func (k *core) findRuled(rules list, dir string, takes func(name string, dir bool) bool, left *int) (r *rulebook.Rule, found string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // what cannot be listed is not read either
		if *left--; *left < 0 {
			return fs.SkipAll
		}
		switch {
		case err != nil || path == dir:
			return nil
		case d.IsDir() && (d.Name() == ".git" || !takes(d.Name(), true)):
			return fs.SkipDir
		case !d.IsDir() && !takes(d.Name(), false):
			return nil
		}
		if d.IsDir() {
			return nil
		}
		on := rules.Read.Match(pathname.Slashed(path), false)
		if on == nil && rules.action == Deny {
			on = k.linkRule(d)
		}
		if on == nil || rules.action == Ask && k.deny.Read.Match(pathname.Slashed(path), false) != nil { // what is denied no command comes to
			return nil
		}
		r, found = on, path
		return fs.SkipAll
	})
	return r, found
}

// linkRule returns the rule that denies reading a file by another of its names.
func (k *core) linkRule(d fs.DirEntry) *rulebook.Rule {
	info, err := d.Info()
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	id, names := realpath.Identify(info)
	if names < 2 {
		return nil
	}
	return k.namesSince(info).Reads[id]
}
