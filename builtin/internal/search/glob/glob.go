// Package glob compiles and matches the path patterns of gitignore files, of
// ripgrep's --glob, and of the Glob tool. The dialect is that of ripgrep's
// globset with a literal separator: `*` and `?` stay inside one path element,
// `**` as a whole element spans directories, `[…]` is a class and `{a,b}` an
// alternation, also in gitignore files, where git itself has none.
//
// Matching takes time in proportion to pattern × path, whatever the pattern.
package glob

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"
)

// MaxAlternatives bounds how many patterns one with braces may stand for.
const MaxAlternatives = 1024

// MaxExpanded bounds how long they are together, in bytes. Each takes 16 bytes of memory when it is compiled.
const MaxExpanded = 128 << 10

// MaxLength bounds a pattern, in bytes. Paths end at 4,096 on Linux.
const MaxLength = 8192

// Errors of Compile. They are wrapped with the position where one is known.
var (
	ErrUnopened = errors.New("unopened alternation: a `}` without `{` (write `[}]` for the character)")
	ErrUnclosed = errors.New("unclosed alternation: a `{` without `}` (write `[{]` for the character)")
	ErrClass    = errors.New("unclosed character class: a `[` without `]`")
	ErrRange    = errors.New("character range runs backwards")
	ErrEscape   = errors.New("backslash at the end")
	ErrTooLong  = fmt.Errorf("pattern is longer than %d bytes", MaxLength)
	ErrTooMany  = fmt.Errorf("alternations expand to more than %d patterns", MaxAlternatives)
	ErrExpanded = fmt.Errorf("alternations expand to patterns of more than %d bytes together", MaxExpanded)
)

// Options vary the dialect.
type Options struct {
	// OpenClass reads an unclosed `[` as the character, as gitignore files do,
	// instead of refusing the pattern.
	OpenClass bool
}

// A Pattern is one compiled glob. It is immutable.
type Pattern struct {
	kind   kind
	lit    string // for every kind but general
	tail   string // for baseEnds
	prefix string // general: literal directories that start every match, ending in a slash, or empty
	alts   [][]op
	ends   []string // general: literal ends, one for each alternative
}

// Simple reports whether the pattern has one of the shapes that need no automaton.
func (p *Pattern) Simple() bool { return p.kind != general }

// Size is about how many bytes of memory the pattern takes.
func (p *Pattern) Size() int64 {
	n := int64(unsafe.Sizeof(*p)) + int64(len(p.lit)+len(p.tail)+len(p.prefix))
	for i, ops := range p.alts {
		n += int64(unsafe.Sizeof(ops)+unsafe.Sizeof(p.ends[i])) + int64(cap(ops))*int64(unsafe.Sizeof(op{})) +
			int64(len(p.ends[i]))
		for _, o := range ops {
			if o.class != nil {
				n += int64(unsafe.Sizeof(*o.class))
			}
		}
	}
	return n
}

// kind is the shape of a pattern. All but general need no automaton.
type kind uint8

const (
	general      kind = iota
	whole             // the path equals lit
	base              // the last element equals lit
	baseContains      // the last element contains lit
	baseEnds          // the last element starts with lit and ends in tail, which do not overlap
)

// Compile parses a pattern that is matched against whole slash-separated
// paths. A pattern that shall match at any depth starts with `**/`.
func Compile(pattern string, o Options) (*Pattern, error) {
	if len(pattern) > MaxLength {
		return nil, ErrTooLong
	}
	alts, err := expand(pattern, o)
	if err != nil {
		return nil, err
	}
	p := &Pattern{}
	for _, a := range alts {
		ops, err := parse(a, o)
		if err != nil {
			return nil, err
		}
		p.alts = append(p.alts, ops)
	}
	if p.classify(); p.kind != general {
		p.alts = nil // of no more use
	}
	return p, nil
}

// Match reports whether the slash-separated path, relative to where the
// pattern is anchored, matches as a whole.
func (p *Pattern) Match(path string) bool {
	switch p.kind {
	case whole:
		return path == p.lit
	case base:
		return lastElement(path) == p.lit
	case baseContains:
		return strings.Contains(lastElement(path), p.lit)
	case baseEnds:
		if ok := strings.HasSuffix(path, p.tail); !ok || p.lit == "" { // which is all for most paths
			return ok
		}
		name := lastElement(path)
		return len(name) >= len(p.lit)+len(p.tail) && strings.HasPrefix(name, p.lit)
	}
	if !strings.HasPrefix(path, p.prefix) {
		return false
	}
	for i, ops := range p.alts {
		if strings.HasSuffix(path, p.ends[i]) && matchOps(ops, path) {
			return true
		}
	}
	return false
}

// Base returns the literal that the last path element must equal, for rules
// that can be looked up in a map.
func (p *Pattern) Base() (string, bool) { return p.lit, p.kind == base }

// Extension returns the suffix, such as `.o`, if the pattern matches exactly the names with that last extension. Such
// rules can be looked up in a map.
func (p *Pattern) Extension() (string, bool) {
	ok := p.kind == baseEnds && p.lit == "" && strings.LastIndexByte(p.tail, '.') == 0
	return p.tail, ok
}

// NameEnds is what the last element of a path starts and ends with, in one alternative
// of a pattern. The two may overlap.
type NameEnds struct{ First, Last string }

// NameEnds returns what the last element of every match has at its ends, for each
// alternative of the pattern.
func (p *Pattern) NameEnds() []NameEnds {
	switch p.kind {
	case whole, base:
		name := lastElement(p.lit)
		return []NameEnds{{name, name}}
	case baseContains:
		return []NameEnds{{}}
	case baseEnds:
		return []NameEnds{{p.lit, p.tail}}
	}
	var out []NameEnds
	for _, end := range p.ends {
		out = append(out, NameEnds{Last: lastElement(end)})
	}
	return out
}

// EndsDecide reports whether every path whose last element has those ends matches.
func (p *Pattern) EndsDecide() bool { return p.kind == baseEnds && (p.lit == "" || p.tail == "") }

// Dir returns the literal directory, without a slash at its end, in which
// every match lies; "" when there is none.
func (p *Pattern) Dir() string {
	switch p.kind {
	case whole:
		if i := strings.LastIndexByte(p.lit, '/'); i >= 0 {
			return p.lit[:i]
		}
	case general:
		return strings.TrimSuffix(p.prefix, "/")
	}
	return ""
}

func lastElement(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// classify finds the shapes that Match decides without the automaton.
func (p *Pattern) classify() {
	if len(p.alts) == 1 {
		ops := p.alts[0]
		if lit, ok := literal(ops); ok {
			p.kind, p.lit = whole, lit
			return
		}
		if len(ops) > 1 && ops[0].kind == opDirs && p.classifyBase(ops[1:]) {
			return
		}
		p.kind, p.lit, p.tail = general, "", ""
	}
	p.prefix = commonDir(p.alts)
	for _, ops := range p.alts {
		p.ends = append(p.ends, literalEnd(ops))
	}
}

// classifyBase looks at what follows a leading `**/`.
func (p *Pattern) classifyBase(ops []op) bool {
	if lit, ok := literal(ops); ok && !strings.Contains(lit, "/") {
		p.kind, p.lit = base, lit
		return true
	}
	at := slices.IndexFunc(ops, func(o op) bool { return o.kind == opStar })
	if at < 0 {
		return false
	}
	last := len(ops) - 1
	if at == 0 && last > 1 && ops[last].kind == opStar {
		lit, ok := literal(ops[1:last])
		p.kind, p.lit = baseContains, lit
		return ok && !strings.Contains(lit, "/")
	}
	lit, ok := literal(ops[:at])
	tail, tailOK := literal(ops[at+1:])
	p.kind, p.lit, p.tail = baseEnds, lit, tail
	return ok && tailOK && lit+tail != "" && !strings.Contains(lit+tail, "/")
}

func literal(ops []op) (string, bool) {
	b := make([]byte, 0, len(ops))
	for _, o := range ops {
		if o.kind != opByte {
			return "", false
		}
		b = append(b, o.c)
	}
	return string(b), true
}

func literalEnd(ops []op) string {
	i := len(ops)
	for i > 0 && ops[i-1].kind == opByte {
		i--
	}
	lit, _ := literal(ops[i:])
	return lit
}

// commonDir returns the literal directories that all alternatives start with.
func commonDir(alts [][]op) string {
	common := ""
	for k, ops := range alts {
		i := 0
		for i < len(ops) && ops[i].kind == opByte {
			i++
		}
		lit, _ := literal(ops[:i])
		if k == 0 {
			common = lit
			continue
		}
		n := 0
		for n < len(common) && n < len(lit) && common[n] == lit[n] {
			n++
		}
		common = common[:n]
	}
	return common[:strings.LastIndexByte(common, '/')+1]
}
