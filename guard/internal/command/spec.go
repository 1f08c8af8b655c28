package command

import (
	"slices"
	"strings"
)

// A spec describes the options of a program in the notation of getopt(3):
// a letter or a long name followed by ":" takes a value, by "::" an optional
// one, which must be attached.
type spec struct {
	short string // "fk:s:v"
	long  string // "kill-after: signal: verbose", separated by spaces

	// permute: options may follow operands, as GNU programs let them. Wrappers
	// stop at their first operand.
	permute bool

	// open: an option that is not listed is taken for one without value.
	// Otherwise it makes the parse unsure.
	open bool
}

// An option is one option as given; letters of a cluster are split up.
type option struct {
	name  string // without dashes
	long  bool   // the name had two dashes
	value Word
	has   bool // value was given
}

// A parsed holds the options and the operands of a command, as its spec tells them apart.
type parsed struct {
	options  []option
	operands []Word
	rest     int    // index of the first operand, len(args) if there is none
	unsure   string // why the options could not be distinguished from the operands
}

func (s spec) parse(args []Word) parsed {
	p := parsed{rest: len(args)}
	for i := 1; i < len(args); i++ {
		word := args[i]
		if !word.Static && word.MayBeOption() && !s.open {
			p.unsure = "a dynamic word stands where options are read: " + word.Text
			return p
		}
		text := word.Text
		switch {
		case !word.Static || len(text) < 2 || text[0] != '-':
			p.rest = min(p.rest, i)
			if !s.permute {
				p.operands = args[i:]
				return p
			}
			p.operands = append(p.operands, word)
		case text == "--":
			p.rest = min(p.rest, i+1)
			p.operands = append(p.operands, args[i+1:]...)
			return p
		case text[1] == '-':
			i += s.parseLong(&p, args, i)
		default:
			i += s.parseShort(&p, args, i)
		}
	}
	return p
}

// parseLong reads a word of the form --name[=value] and returns how many
// further words it took. getopt accepts any unambiguous start of a name.
func (s spec) parseLong(p *parsed, args []Word, i int) int {
	name, value, attached := strings.Cut(args[i].Text[2:], "=")
	full, takes := s.longName(name)
	if full == "" {
		if !s.open {
			p.unsure = "an option that is not known: --" + name
		}
		full = name
	}
	o := option{name: full, long: true}
	switch {
	case attached:
		o.value, o.has = Word{Text: value, Static: true, single: true}, true
	case takes == 1 && i+1 < len(args):
		o.value, o.has = args[i+1], true
	}
	p.options = append(p.options, o)
	if o.has && !attached {
		p.checkValue(s, o)
		return 1
	}
	return 0
}

// longName returns the listed name that equals given or begins with it, and whether it takes no value (0), a value
// (1) or an optional one (2). A name that takes a value wins over one that does not.
func (s spec) longName(given string) (name string, takes int) {
	for field := range strings.FieldsSeq(s.long) {
		bare := strings.TrimRight(field, ":")
		colons := len(field) - len(bare)
		if bare == given {
			return bare, colons
		}
		if strings.HasPrefix(bare, given) && (name == "" || colons == 1) {
			name, takes = bare, colons
		}
	}
	return name, takes
}

// parseShort reads a cluster of letters and returns how many further words it
// took.
func (s spec) parseShort(p *parsed, args []Word, i int) int {
	cluster := args[i].Text[1:]
	for j := 0; j < len(cluster); j++ {
		o := option{name: cluster[j : j+1]}
		takes := s.shortTakes(cluster[j])
		if takes < 0 && !s.open {
			p.unsure = "an option that is not known: -" + o.name
		}
		if takes <= 0 {
			p.options = append(p.options, o)
			continue
		}
		took := 0
		switch {
		case j+1 < len(cluster):
			o.value, o.has = Word{Text: cluster[j+1:], Static: true, single: true}, true
		case takes == 1 && i+1 < len(args):
			o.value, o.has, took = args[i+1], true, 1
			p.checkValue(s, o)
		}
		p.options = append(p.options, o)
		return took
	}
	return 0
}

// shortTakes returns what a letter takes, as longName does; -1 means that it is not listed.
func (s spec) shortTakes(letter byte) int {
	k := strings.IndexByte(s.short, letter)
	if k < 0 || letter == ':' {
		return -1
	}
	rest := s.short[k+1:]
	return len(rest) - len(strings.TrimLeft(rest, ":"))
}

// checkValue makes the parse unsure when the value of an option may be several
// words, so that those after it would shift.
func (p *parsed) checkValue(s spec, o option) {
	if !o.value.Static && !o.value.single && !s.open {
		p.unsure = "the value of option " + o.name + " may be several words: " + o.value.Text
	}
}

// has reports whether one of the options, separated by spaces, was given.
func (p parsed) has(names string) bool {
	return slices.ContainsFunc(p.options, func(o option) bool { return oneOf(o.name, names) })
}

// values returns the values that the options, separated by spaces, were given.
func (p parsed) values(names string) (words []Word) {
	for _, o := range p.options {
		if o.has && oneOf(o.name, names) {
			words = append(words, o.value)
		}
	}
	return words
}

// hasStartOf is like has, but also takes the start of a long name for it:
// programs accept abbreviations, of options this package does not list too.
func (p parsed) hasStartOf(names string) bool {
	return slices.ContainsFunc(p.options, func(o option) bool {
		return oneOf(o.name, names) || o.long && isStartOfOneOf(o.name, names)
	})
}

// oneOf reports whether name is in list, whose elements are separated by
// spaces.
func oneOf(name, list string) bool {
	for field := range strings.FieldsSeq(list) {
		if field == name {
			return true
		}
	}
	return false
}
