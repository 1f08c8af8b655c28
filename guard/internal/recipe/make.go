package recipe

import (
	"slices"
	"strings"
)

// maxExpansion bounds what the variables of a makefile expand to, in bytes.
const maxExpansion = 64 << 10

// A makefile is what was read of one and of those that it includes.
type makefile struct {
	vars     map[string]string
	fixed    map[string]bool // variables of the command line, which assignments do not change
	rules    []*makeRule
	goals    []string // what make makes unasked: the first target, and what is included
	lines    []string // of $(shell …) outside of recipes, which run when the file is read
	included int
	left     int // steps that may still be taken, see maxSteps
}

// maxSteps bounds the work on one makefile, whatever is in it.
const maxSteps = 500_000

// step takes n steps, and reports whether there were that many.
func (m *makefile) step(n int) bool {
	m.left -= n
	return m.left > 0
}

type makeRule struct {
	targets, prerequisites []string
	recipe                 []string
}

// Make returns what make runs for the goals, none for the usual one, from the makefile in
// text. vars are those of the command line; read returns the text of an included file. It
// is not all if there is too much to look at.
func Make(text string, goals []string, vars map[string]string, read func(name string) (string, bool)) (runs []Run, all bool) {
	m := &makefile{left: maxSteps, vars: map[string]string{"RM": "rm -f", "MAKE": "make", "CC": "cc", "CXX": "g++", "AR": "ar", "LD": "ld", "SHELL": "/bin/sh", "INSTALL": "install"}, fixed: map[string]bool{}}
	for name, value := range vars {
		m.vars[name], m.fixed[name] = value, true
	}
	m.parse(text, read)
	if len(goals) == 0 {
		goals = m.usual()
	}
	if len(m.lines) > 0 {
		runs = append(runs, Run{"(when it is read)", strings.Join(m.lines, "\n")})
	}
	for _, r := range m.reached(slices.Concat(goals, m.goals, []string{"Makefile", "makefile", "GNUmakefile"})) {
		if run := m.run(r); run.Text != "" {
			runs = append(runs, run)
		}
	}
	return runs, m.left > 0
}

// run returns the recipe of a rule as the shell sees it.
func (m *makefile) run(r *makeRule) Run {
	var lines []string
	for _, line := range r.recipe {
		line = m.expand(line, 0)
		for inner := range strings.SplitSeq(line, "\n") {
			if inner = strings.TrimLeft(inner, " \t@+-"); inner != "" {
				lines = append(lines, inner)
			}
		}
	}
	return Run{strings.Join(r.targets, " "), strings.Join(lines, "\n")}
}

// usual is the goal that make has without being told.
func (m *makefile) usual() []string {
	if goal := strings.Fields(m.expand(m.vars[".DEFAULT_GOAL"], 0)); len(goal) > 0 {
		return goal
	}
	for _, r := range m.rules {
		for _, t := range r.targets {
			if !strings.Contains(t, "%") && (t[0] != '.' || strings.Contains(t, "/")) {
				return []string{t}
			}
		}
	}
	return nil
}

// maxGoal is the length of the longest name that is followed: a pattern may need itself,
// with more behind it each time.
const maxGoal = 255

// reached returns the rules that making the goals may come to.
func (m *makefile) reached(goals []string) (found []*makeRule) {
	exact, patterns := m.index()
	known, taken := map[string]bool{}, map[*makeRule]bool{}
	for len(goals) > 0 && m.step(1+len(patterns)+len(goals[0])/8) {
		goal := strings.TrimPrefix(goals[0], "./")
		goals = goals[1:]
		if known[goal] || len(goal) > maxGoal {
			continue
		}
		known[goal] = true
		rules := slices.Concat(exact[goal], patterns)
		if goal == Any {
			rules = m.rules
		}
		for _, r := range rules {
			stem, ok := r.makes(goal)
			if !ok {
				continue
			}
			for _, p := range r.prerequisites {
				if strings.Contains(p, "%") || !taken[r] {
					goals = append(goals, strings.ReplaceAll(p, "%", stem))
				}
			}
			if !taken[r] {
				taken[r] = true
				found = append(found, r)
			}
		}
	}
	return found
}

// index returns the rules by their targets, and those for patterns.
func (m *makefile) index() (exact map[string][]*makeRule, patterns []*makeRule) {
	exact = map[string][]*makeRule{}
	for _, r := range m.rules {
		pattern := false
		for _, t := range r.targets {
			t = strings.TrimPrefix(t, "./")
			exact[t] = append(exact[t], r)
			pattern = pattern || strings.Contains(t, "%")
		}
		if pattern {
			patterns = append(patterns, r)
		}
	}
	return exact, patterns
}

// anyGoal is a prerequisite that is not known before make runs. Every pattern may make it.
const anyGoal = "\x00"

// makes reports whether a rule makes the goal, and what the % of its pattern stands for.
func (r *makeRule) makes(goal string) (stem string, ok bool) {
	for _, t := range r.targets {
		before, after, pattern := strings.Cut(t, "%")
		switch {
		case t == goal || goal == Any || strings.TrimPrefix(t, "./") == goal:
			return "", true
		case pattern && goal == anyGoal:
			return anyGoal, true
		case pattern && len(goal) > len(before)+len(after) && strings.HasPrefix(goal, before) && strings.HasSuffix(goal, after):
			return goal[len(before) : len(goal)-len(after)], true
		}
	}
	return "", false
}

// expand puts the values of variables in their places. What make runs in a shell while it
// expands, $(shell rm x), becomes the substitution of that shell: $(rm x).
func (m *makefile) expand(text string, depth int) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(text, "$")
		b.WriteString(before)
		if !ok || rest == "" || b.Len() > maxExpansion || !m.step(1+len(before)/64) {
			return b.String()
		}
		switch rest[0] {
		case '$':
			b.WriteByte('$')
			text = rest[1:]
		case '(', '{':
			inner, after := bracketed(rest)
			b.WriteString(m.reference(inner, depth))
			text = after
		default:
			b.WriteString(m.variable(rest[:1], depth))
			text = rest[1:]
		}
	}
}

// bracketed takes apart a text that begins with a bracket.
func bracketed(text string) (inner, after string) {
	opens, closes := text[0], byte(')')
	if opens == '{' {
		closes = '}'
	}
	level := 0
	for i := range len(text) {
		switch text[i] {
		case opens:
			level++
		case closes:
			if level--; level == 0 {
				return text[1:i], text[i+1:]
			}
		}
	}
	return text[1:], ""
}

// reference expands what stands in $(…).
func (m *makefile) reference(inner string, depth int) string {
	if depth > 20 {
		return ""
	}
	function, args, ok := strings.Cut(inner, " ")
	if !ok {
		name, _, _ := strings.Cut(m.expand(inner, depth+1), ":") // $(X:.c=.o)
		return m.variable(name, depth)
	}
	switch function {
	case "shell":
		return "$(" + m.expand(args, depth+1) + ")"
	case "call":
		name, rest, _ := strings.Cut(args, ",")
		return m.variable(strings.TrimSpace(m.expand(name, depth+1)), depth) + " " + m.expand(rest, depth+1)
	case "if", "or", "and", "foreach", "eval", "value", "strip":
		return strings.ReplaceAll(m.expand(args, depth+1), ",", "\n")
	case "info", "warning", "error", "origin", "flavor":
		return ""
	}
	return "x" // names of files as a rule
}

func (m *makefile) variable(name string, depth int) string {
	if len(name) == 1 && strings.Contains("@<^+?*%|", name) || len(name) == 2 && strings.ContainsAny(name[:1], "@<^+?*") {
		return "x"
	}
	if depth > 20 {
		return ""
	}
	return m.expand(m.vars[name], depth+1)
}
