package guard

import (
	"os"
	"strings"

	"toolhost/guard/internal/command"
	"toolhost/guard/internal/pathname"
	"toolhost/guard/settings"
)

// projectDir is the variable by which hooks find the project.
const projectDir = "CLAUDE_PROJECT_DIR"

// hookFiles returns the files of the boundary that hooks run: with a hook, who writes them
// would run something outside of any sandbox, and there would be no hook any more. What
// these run in turn is not among them.
func (k *core) hookFiles(hooks map[string][]settings.HookMatcher, s pathname.Spelling) pathname.Places {
	if len(hooks) == 0 {
		return pathname.Places{}
	}
	var found []pathname.Place
	for _, groups := range hooks {
		for _, group := range groups {
			for _, h := range group.Hooks {
				found = append(found, k.loadedBy(h)...)
			}
		}
	}
	return pathname.PlacesOf(s, found...)
}

// loadedBy returns what one hook runs of the boundary. A program that is not there yet
// counts too: it would run as soon as it is.
func (k *core) loadedBy(h settings.Hook) (found []pathname.Place) {
	project := pathOf(k.roots[0])
	project.dir = true
	text := h.Command
	if h.Args != nil {
		text = command.Quote(strings.ReplaceAll(h.Command, "${"+projectDir+"}", project.given))
		for _, arg := range h.Args {
			text += " " + command.Quote(strings.ReplaceAll(arg, "${"+projectDir+"}", project.given))
		}
	}
	if plain(project.given) { // what is known as text is followed further: cd "$CLAUDE_PROJECT_DIR"/tools
		text = strings.NewReplacer("${"+projectDir+"}", project.given, "$"+projectDir, project.given).Replace(text)
	}
	l := &line{judge: &judge{k: k}, dirs: []Path{project}, analysis: command.Analyze(projectDir + "=" + command.Quote(project.given) + "\n" + text)}
	for _, s := range l.analysis.Commands {
		for i, word := range s.Loads() {
			for _, t := range l.loadable(word, l.standsIn(s.Places)) {
				info, err := os.Lstat(t.path.real)
				program := i == 0 && word.Text == s.Args[0].Text
				if program && err != nil || err == nil && !info.IsDir() {
					found = append(found, pathname.Place{Given: t.path.given, Real: t.path.real})
				}
			}
		}
	}
	return found
}

// plain reports whether a path means the same to a shell in quotation marks and without.
func plain(path string) bool {
	return !strings.ContainsFunc(path, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && !strings.ContainsRune("/._-+@:,", r)
	})
}

// loadable returns the files of the boundary that a word may name.
func (l *line) loadable(word command.Word, dirs []Path) (found []*target) {
	words := []command.Word{word}
	for _, text := range word.Guesses() {
		words = append(words, command.Word{Text: text, Static: true})
	}
	for _, t := range l.targets(words, dirs, reading) {
		if l.inside(t) || l.k.inside.Hold(t.given) {
			found = append(found, t)
		}
	}
	return found
}
