package recipe

import "strings"

// parse reads the text of a makefile.
func (m *makefile) parse(text string, read func(name string) (string, bool)) {
	var rule *makeRule
	define := ""
	for line := range strings.Lines(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\\\n", " ")) {
		line = strings.TrimRight(line, "\n")
		words := strings.Fields(line)
		switch {
		case define != "":
			if len(words) > 0 && words[0] == "endef" {
				define = ""
				continue
			}
			m.grow(define, line+"\n")
		case strings.HasPrefix(line, "\t") && rule != nil:
			rule.recipe = append(rule.recipe, line[1:])
		case len(words) == 0 || words[0][0] == '#':
		case words[0] == "define" && len(words) > 1 || len(words) > 2 && words[0] == "override" && words[1] == "define":
			define = strings.TrimRight(words[len(words)-1], "=:?+")
			if define == "" {
				define = words[len(words)-2]
			}
			m.vars[define] = ""
		case words[0] == "include" || words[0] == "-include" || words[0] == "sinclude":
			rule = nil
			m.include(words[1:], read)
		case strings.Contains(" ifeq ifneq ifdef ifndef else endif export unexport vpath ", " "+words[0]+" ") && !strings.ContainsAny(line, "=:"),
			strings.HasPrefix(words[0], "ifeq"), strings.HasPrefix(words[0], "ifneq"):
			m.now(line)
		default:
			rule = m.line(stripComment(line), rule)
		}
	}
}

// now notes what $(shell …) in a line outside of recipes runs.
func (m *makefile) now(line string) {
	for {
		_, rest, ok := strings.Cut(line, "$(shell ")
		if !ok || !m.step(1+len(rest)/8) {
			return
		}
		inner, _ := bracketed("(" + rest)
		m.lines = append(m.lines, m.expand(inner, 0))
		line = rest
	}
}

func (m *makefile) include(names []string, read func(name string) (string, bool)) {
	for _, name := range names {
		name = m.expand(name, 0)
		for name := range strings.FieldsSeq(name) {
			m.goals = append(m.goals, name) // make makes what it includes
			if m.included++; m.included > 100 {
				return
			}
			if text, ok := read(name); ok {
				m.parse(text, read)
			}
		}
	}
}

// line reads an assignment or the head of a rule, and returns the rule whose recipe
// follows.
func (m *makefile) line(line string, before *makeRule) *makeRule {
	m.now(line)
	if m.assignment(line) {
		return before
	}
	at := colon(line)
	if at < 0 {
		return before
	}
	r := &makeRule{targets: m.names(line[:at])}
	rest := strings.TrimLeft(line[at:], ":&")
	rest, recipe, inline := strings.Cut(rest, ";")
	if inline {
		r.recipe = []string{recipe}
	}
	if m.assignment(strings.TrimLeft(rest, ": ")) { // of this target alone: it may be run by any
		return nil
	}
	if pattern, more, static := strings.Cut(rest, ":"); static { // a.o b.o: %.o: %.c
		r.targets, rest = append(r.targets, m.names(pattern)...), more
	}
	r.prerequisites = m.names(strings.ReplaceAll(rest, "|", " "))
	if len(r.targets) == 0 {
		return nil
	}
	m.rules = append(m.rules, r)
	return r
}

// colon returns where the colon of a rule stands, outside of references.
func colon(line string) int {
	level := 0
	for i := range len(line) {
		switch line[i] {
		case '(', '{':
			level++
		case ')', '}':
			level--
		case ':':
			if level <= 0 {
				return i
			}
		}
	}
	return -1
}

// names returns the words of a list of files. One that is computed stands for any.
func (m *makefile) names(list string) []string {
	var out []string
	for _, function := range []string{"$(wildcard ", "$(patsubst ", "$(addprefix ", "$(addsuffix ", "$(foreach ", "$(shell ", "$(subst ", "$(filter", "$(sort ", "$(call ", "$(notdir ", "$(basename "} {
		if strings.Contains(m.unfold(list), function) {
			out = append(out, anyGoal)
			break
		}
	}
	return append(out, strings.Fields(m.expand(list, 0))...)
}

// unfold returns a list with the definitions of the variables that it names.
func (m *makefile) unfold(list string) string {
	all := list
	for range 4 {
		for rest := list; ; {
			var ok bool
			if _, rest, ok = strings.Cut(rest, "$"); !ok || !m.step(1+len(rest)/8+len(all)/64) || rest == "" || rest[0] != '(' && rest[0] != '{' {
				break
			}
			name, _ := bracketed(rest)
			name, change, _ := strings.Cut(name, ":")
			if all += " " + m.vars[name]; change != "" {
				all += " $(patsubst "
			}
			list = m.vars[name]
		}
	}
	return all
}

// assignment reads a line that gives a variable a value.
func (m *makefile) assignment(line string) bool {
	at := strings.IndexByte(line, '=')
	if at <= 0 {
		return false
	}
	name, value := line[:at], strings.TrimSpace(line[at+1:])
	operator := name[len(strings.TrimRight(name, ":?+!")):]
	name = strings.TrimRight(name, ":?+!")
	words := strings.Fields(name)
	for len(words) > 1 && strings.Contains(" export override private unexport ", " "+words[0]+" ") {
		words = words[1:]
	}
	if len(words) != 1 || strings.ContainsAny(words[0], ":()#\"'") {
		return false
	}
	name = words[0]
	switch {
	case m.fixed[name], operator == "?" && m.vars[name] != "":
	case operator == "+":
		m.grow(name, " "+value)
	case operator == "!":
		m.lines = append(m.lines, m.expand(value, 0))
	case strings.HasPrefix(operator, ":"):
		m.vars[name] = strings.ReplaceAll(m.expand(value, 0), "$", "$$")
	default:
		m.vars[name] = value
	}
	return true
}

// grow adds to the value of a variable.
func (m *makefile) grow(name, more string) {
	if m.step(1 + len(m.vars[name])/64) {
		m.vars[name] += more
	}
}

// stripComment takes a comment off a line that is no recipe.
func stripComment(line string) string {
	for i := range len(line) {
		if line[i] == '#' && (i == 0 || line[i-1] != '\\') {
			return line[:i]
		}
	}
	return line
}
