package rules

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// programs are the names of programs in the rules of a list.
type programs struct {
	// second has the second words of the rules on a program, by its base name. "" stands for a rule without a second
	// word, or with one that need not follow directly because it is an option or has a wildcard.
	second map[string][]string
	whole  map[string]*Rule // the rules on every use of a program: Bash(rm:*)
	about  map[string]*Rule // one rule on each program
	any    bool             // the first word of a rule has a wildcard
	paths  bool             // a rule names a program by its path
}

// note records the program of a rule.
func (p *programs) note(spec string, r *Rule) {
	if p.second == nil {
		p.second, p.whole, p.about = map[string][]string{}, map[string]*Rule{}, map[string]*Rule{}
	}
	words := strings.Fields(spec)
	if len(words) == 0 {
		return
	}
	if strings.Contains(words[0], "*") {
		p.any = true
		return
	}
	p.paths = p.paths || strings.Contains(words[0], "/")
	name, second := path.Base(words[0]), ""
	if len(words) > 1 && !isOption(words[1]) && !strings.Contains(words[1], "*") {
		second = words[1]
	}
	p.second[name] = append(p.second[name], second)
	setFirst(p.about, name, r)
	if len(words) == 2 && words[1] == "*" {
		setFirst(p.whole, words[0], r)
	}
}

// Programs returns the base names of the programs that rules name.
func (c *Commands) Programs() []string { return slices.Sorted(maps.Keys(c.programs.second)) }

// About returns a rule on the program with a base name, or nil.
func (c *Commands) About(name string) *Rule { return c.programs.about[name] }

// Whole returns the programs for which there is a rule on every use, as named in the rules.
func (c *Commands) Whole() []string { return slices.Sorted(maps.Keys(c.programs.whole)) }

// Names reports whether rules name programs by their paths.
func (c *Commands) Names() (byPath bool) { return c.programs.paths }

// Speaks reports whether a rule may match a command of the program with a base name.
func (c *Commands) Speaks(name string) bool {
	return c.programs.any || c.programs.second[name] != nil
}

// Further reports whether a rule that does not match these words of a command may match when the following words,
// which were not read, are known.
func (c *Commands) Further(words []string) bool {
	if c.programs.any {
		return true
	}
	for _, second := range c.programs.second[path.Base(words[0])] {
		if second == "" || len(words) < 2 || isOption(words[1]) || slices.Contains(words[1:], second) {
			return true
		}
	}
	return false
}
