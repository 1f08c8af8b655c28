package guard

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"toolhost/guard/internal/command"
	"toolhost/guard/internal/realpath"
	"toolhost/guard/internal/recipe"
	"toolhost/guard/internal/rulebook"
	"toolhost/guard/internal/wildcard"
)

// A ruling is a command that a task or a script runs, and the rule that speaks of it.
type ruling struct {
	rule *rulebook.Rule // nil: what runs cannot be told
	by   string         // "make clean"
	text string         // the command
}

// tasks asks where a target of a makefile, a script of a package or the like runs what
// rules deny or ask for, as far as its file says so.
func (l *line) tasks() {
	for _, s := range l.analysis.Commands {
		if found, ok := l.taskRuns(s); ok {
			part := l.part(Ask, RuleUndecidable, fmt.Sprintf("%s would run %s, and rules deny some commands or ask for them.", found.by, found.text),
				"Run what is needed of it directly, or let a person agree.")
			if part.Firm = true; found.rule != nil {
				part.Rule, part.Source, part.Remedy = found.rule.Text, found.rule.Source, ruleRemedy(Ask)
				part.Reason = fmt.Sprintf("%s would run %s, of which a rule speaks.", found.by, clip(found.text))
			}
			l.add(part)
			return
		}
	}
}

// taskRuns returns what a rule speaks of among what a task runner is asked for.
func (l *line) taskRuns(s command.Simple) (ruling, bool) {
	t, ok := s.Task()
	if !ok {
		return ruling{}, false
	}
	for _, dir := range l.standsIn(s.Places) {
		for _, name := range t.Dirs {
			if p, err := l.resolve(name, name.Text, dir); err == nil {
				dir = p
			}
		}
		files, all := l.taskFiles(t, dir)
		if !all || len(t.Names) > maxTaskNames {
			return ruling{by: clip(s.Text), text: tooMuch}, true
		}
		for _, file := range files {
			if found, ok := l.fileRuns(t, file); ok {
				found.by = strings.TrimSpace(clip(s.Text)) + " (" + filepath.Base(file.real) + ")"
				return found, true
			}
		}
	}
	return ruling{}, false
}

// The names that task runners look for.
var taskNames = map[string][]string{
	"make":    {"GNUmakefile", "makefile", "Makefile"},
	"scripts": {"package.json", "composer.json", "deno.json", "deno.jsonc"},
	"just":    {"justfile", "Justfile", ".justfile"},
	"task":    {"Taskfile.yml", "taskfile.yml", "Taskfile.yaml", "taskfile.yaml", "Taskfile.dist.yml", "Taskfile.dist.yaml"},
}

const (
	// maxPackages bounds the packages of a workspace that are looked into, maxTaskNames
	// what a runner is asked for at once.
	maxPackages  = 200
	maxTaskNames = 100

	// tooMuch is what a task runs that is beyond a bound.
	tooMuch = "more than can be looked at"
)

// taskFiles returns the files that the runner reads: those it is given, or those of the
// nearest directory that has any. It is not all of them if there are too many.
func (l *line) taskFiles(t command.Task, dir Path) (files []Path, all bool) {
	for _, name := range t.Files {
		if p, err := l.resolve(name, name.Text, dir); err == nil {
			files = append(files, p)
		}
	}
	if len(t.Files) > 0 {
		return files, true
	}
	for at := dir.real; ; at = filepath.Dir(at) {
		for _, name := range taskNames[t.Runner] {
			p, err := l.k.resolve(Path{given: at, real: at}, name)
			if err != nil || !realpath.Exists(p.real) && !l.writesTo(newTarget(p, writing, "")) {
				continue
			}
			if files = append(files, p); t.Runner != "scripts" {
				return files, true
			}
		}
		if len(files) > 0 || t.Runner == "make" || at == filepath.Dir(at) {
			break
		}
	}
	if !t.Every {
		return files, true
	}
	for _, depth := range []string{"*", "*/*"} {
		more, _ := filepath.Glob(filepath.Join(wildcard.Quote(dir.real), depth, "package.json"))
		if len(more) > maxPackages {
			return nil, false
		}
		for _, name := range more {
			files = append(files, Path{given: name, real: name})
		}
	}
	return files, true
}

// fileRuns returns what a rule speaks of among what one file runs for a task. What the
// line itself writes into the file is looked into as it stands in the line.
func (l *line) fileRuns(t command.Task, file Path) (ruling, bool) {
	target := newTarget(file, reading, "")
	target.given = strings.Join(append(t.Names, target.real), "\x00")
	if known, many := l.againAs(target.given); known || many {
		return ruling{text: tooMuch}, many
	}
	dir := filepath.Dir(file.real)
	in := Path{given: dir, real: dir}
	if l.writesTo(target) {
		for _, s := range l.analysis.Commands {
			for _, text := range s.Texts() {
				if found, ok := l.textRuns(t, text, in); ok {
					return found, true
				}
			}
		}
	}
	text, whole := readScript(file.real)
	if !whole {
		return ruling{text: tooMuch}, true
	}
	return l.textRuns(t, text, in)
}

// readScript returns the text of a regular file, none for anything else. It is not
// whole if it is too large.
func readScript(name string) (text string, whole bool) {
	raw, err := realpath.ReadSmall(name, maxScript)
	return string(raw), !errors.Is(err, realpath.ErrPart)
}

func (l *line) textRuns(t command.Task, text string, dir Path) (ruling, bool) {
	var runs []recipe.Run
	all, cut, names := true, false, slices.Clone(t.Names)
	for i, name := range names {
		if name == "" {
			names[i] = recipe.Any
		}
	}
	switch t.Runner {
	case "make":
		runs, all = recipe.Make(text, names, t.Vars, func(name string) (string, bool) {
			if !filepath.IsAbs(name) {
				name = filepath.Join(dir.real, name)
			}
			text, whole := readScript(name)
			cut = cut || !whole
			return text, text != ""
		})
		all = all && !cut
	case "scripts":
		runs = recipe.Scripts(text, names)
	case "just":
		runs = recipe.Just(text, names)
	case "task":
		runs, all = recipe.Task(text, names)
	}
	if !all {
		return ruling{text: tooMuch}, true
	}
	for _, run := range runs {
		if t.Dry && !strings.HasPrefix(run.Target, "(") {
			continue // what computes variables runs all the same
		}
		if found, ok := l.recipeRuns(run.Text, dir); ok {
			return found, true
		}
	}
	return ruling{}, false
}

// recipeRuns returns what a rule speaks of among the commands of a recipe, and what these
// run in turn. Lines that cannot be read together are read one by one.
func (l *line) recipeRuns(text string, dir Path) (ruling, bool) {
	all := []string{text}
	if a := command.Analyze(text); a.Partial {
		all = slices.Collect(strings.Lines(text))
	}
	for _, text := range all {
		in := &line{judge: l.judge, text: text, analysis: command.Analyze(text), dirs: []Path{dir}, scripts: l.scripts}
		in.follow()
		for _, s := range in.analysis.Commands {
			for _, list := range []list{l.k.deny, l.k.ask} {
				r, maybe := list.Commands.Denies(s)
				if r != nil {
					return ruling{rule: r, text: s.Text}, true
				}
				if maybe != nil {
					return ruling{text: s.Text}, true
				}
			}
			if found, ok := in.taskRuns(s); ok {
				return found, true
			}
		}
		if in.ruled(in.analysis) {
			return ruling{text: "a script that may run others"}, true
		}
	}
	return ruling{}, false
}
