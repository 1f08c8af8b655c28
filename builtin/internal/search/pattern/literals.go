package pattern

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// Literals are texts of which every match contains at least one.
type Literals struct {
	Texts []string
	// Fold says that ASCII letters stand for both cases; Texts are lower case.
	// Texts with a k or an s then also match with their partners outside of
	// ASCII, the Kelvin sign and the long s.
	Fold bool
	// Before and After are the boundaries of a text in every match.
	Before, After Boundary
	// Prefix says that every match starts with one of the texts.
	Prefix bool
	// Exact says that a line matches if it contains one of the texts with these boundaries.
	Exact bool
}

// Bounds of the analysis: sets with more texts than this are not worth
// looking for one by one.
const (
	maxTexts   = 24
	maxUnion   = 64
	maxClass   = 4 // characters of a class that are spelt out
	maxLiteral = 256
)

// literals returns the best of the required sets of a simplified regexp, or nil.
func literals(re *syntax.Regexp, sets []Literals) *Literals {
	picked := pick(sets)
	if picked == nil {
		return nil
	}
	best := new(*picked)
	if e := exact(re); e != nil && !asserts(inner(re, best)) && !e.mixed && e.fold == best.Fold &&
		slices.Equal(e.normal(), best.Texts) {
		best.Exact = true
	}
	best.Prefix = best.Exact || slices.Equal(prefix(re), best.Texts)
	return best
}

// prefix returns the texts that a sequence starts with, nil when not known.
func prefix(re *syntax.Regexp) []string {
	if re.Op != syntax.OpConcat {
		return nil
	}
	run := &texts{all: []string{""}}
	for _, s := range re.Sub {
		next := run.cross(exact(s))
		if next == nil {
			break
		}
		run = next
	}
	return run.normal()
}

// texts holds all texts that a node can match. A nil *texts stands for unknown or too many.
type texts struct {
	all   []string
	fold  bool
	mixed bool // fold holds for some of the letters only
	// before and after are the assertions on either side.
	before, after Boundary
}

// with returns the fold and mixed of the concatenation of t and next.
func (t *texts) with(next *texts) (fold, mixed bool) {
	mixed = t.mixed || next.mixed || t.fold != next.fold &&
		(!t.fold && t.hasLetters() || !next.fold && next.hasLetters())
	return t.fold || next.fold, mixed
}

func (t *texts) hasLetters() bool {
	return slices.ContainsFunc(t.all, func(s string) bool { return lower(s) != s || strings.ToUpper(s) != s })
}

// normal returns the texts in the form of Literals.
func (t *texts) normal() []string {
	out := slices.Clone(t.all)
	for i := range out {
		if len(out[i]) > maxLiteral {
			return nil
		}
		if t.fold {
			out[i] = lower(out[i])
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// exact lists what a node can match, assertions aside.
func exact(re *syntax.Regexp) *texts {
	switch re.Op {
	case syntax.OpLiteral:
		return exactLiteral(re)
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return &texts{all: []string{""}}
	case syntax.OpCapture:
		return exact(re.Sub[0])
	case syntax.OpCharClass:
		return exactClass(re)
	case syntax.OpQuest:
		if e := exact(re.Sub[0]); e != nil && len(e.all) < maxTexts {
			return &texts{all: append([]string{""}, e.all...), fold: e.fold, mixed: e.mixed}
		}
	case syntax.OpAlternate:
		out := &texts{}
		for _, s := range re.Sub {
			e := exact(s)
			if e == nil || len(out.all)+len(e.all) > maxTexts {
				return nil
			}
			out.fold, out.mixed = out.with(e)
			out.all = append(out.all, e.all...)
		}
		return out
	case syntax.OpConcat:
		out := &texts{all: []string{""}}
		for _, s := range re.Sub {
			if out = out.cross(exact(s)); out == nil {
				return nil
			}
		}
		return out
	}
	return nil
}

func exactLiteral(re *syntax.Regexp) *texts {
	if re.Flags&syntax.FoldCase == 0 {
		return &texts{all: []string{string(re.Rune)}}
	}
	for _, r := range re.Rune {
		if r >= utf8.RuneSelf {
			return nil
		}
	}
	return &texts{all: []string{string(re.Rune)}, fold: true}
}

func exactClass(re *syntax.Regexp) *texts {
	if set(re.Rune).size(maxClass+1) > maxClass {
		return nil
	}
	out := &texts{}
	for i := 0; i < len(re.Rune); i += 2 {
		for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
			out.all = append(out.all, string(r))
		}
	}
	return out
}

// cross returns the concatenations of each of the texts with each of next.
func (t *texts) cross(next *texts) *texts {
	if t == nil || next == nil || len(t.all)*len(next.all) > maxTexts {
		return nil
	}
	out := &texts{}
	out.fold, out.mixed = t.with(next)
	for _, a := range t.all {
		for _, b := range next.all {
			if len(a)+len(b) > 4*maxLiteral {
				return nil
			}
			out.all = append(out.all, a+b)
		}
	}
	return out
}

// required lists sets of texts. Each match contains one text of each set.
func required(re *syntax.Regexp) []Literals {
	if e := exact(re); e != nil && re.Op != syntax.OpConcat {
		return keep(nil, e)
	}
	switch re.Op {
	case syntax.OpLiteral: // folds case, and has letters outside of ASCII
		return requiredFolded(re)
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		return requiredConcat(re.Sub)
	case syntax.OpAlternate:
		return requiredAlternate(re.Sub)
	}
	return nil
}

// requiredFolded returns the ASCII parts of a literal that folds case.
func requiredFolded(re *syntax.Regexp) []Literals {
	var out []Literals
	for run := range strings.FieldsFuncSeq(string(re.Rune), func(r rune) bool { return r >= utf8.RuneSelf }) {
		out = keep(out, &texts{all: []string{run}, fold: true})
	}
	return out
}

func requiredConcat(subs []*syntax.Regexp) []Literals {
	var out []Literals
	run := &texts{all: []string{""}}
	for _, s := range subs {
		e := exact(s)
		if joined := run.cross(e); joined != nil {
			joined.before, joined.after = run.before, AnyBoundary
			if e.empty() {
				joined.after = run.after
				joined.assert(s)
			}
			run = joined
			continue
		}
		if once := repeated(s); once != nil {
			if joined := run.cross(once); joined != nil {
				joined.before, run = run.before, joined
			}
			e = once // what follows comes after the last repetition
		}
		out = keep(out, run)
		if run = e; e == nil {
			out = append(out, required(s)...)
			run = &texts{all: []string{""}}
		}
	}
	return keep(out, run)
}

// repeated returns the texts that a node x+ repeats. It returns nil for other nodes, or if the texts are not known.
func repeated(re *syntax.Regexp) *texts {
	if re.Op != syntax.OpPlus {
		return nil
	}
	return exact(re.Sub[0])
}

// requiredAlternate unites the best set of each branch.
func requiredAlternate(subs []*syntax.Regexp) []Literals {
	var all texts
	for _, s := range subs {
		best := pick(required(s))
		if best == nil || len(all.all)+len(best.Texts) > maxUnion {
			return nil
		}
		all.all, all.fold = append(all.all, best.Texts...), all.fold || best.Fold
	}
	return keep(nil, &all)
}

// keep adds the set to the list unless one of its texts is empty, or is
// folded outside of ASCII.
func keep(list []Literals, t *texts) []Literals {
	n := t.normal()
	if len(n) == 0 {
		return list
	}
	for _, s := range n {
		if s == "" || t.fold && strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) {
			return list
		}
	}
	l := Literals{Texts: n, Fold: t.fold, Before: t.before, After: t.after}
	for _, s := range n {
		if l.Before == WordBoundary && !isWordByte(s[0]) {
			l.Before = AnyBoundary
		}
		if l.After == WordBoundary && !isWordByte(s[len(s)-1]) {
			l.After = AnyBoundary
		}
	}
	return append(list, l)
}

// asserts reports whether a node looks at what is around its match.
func asserts(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	}
	return slices.ContainsFunc(re.Sub, asserts)
}

// pick returns the set that will be rarest in files, or nil when none is rare
// enough to be searched for first.
func pick(list []Literals) *Literals {
	var best *Literals
	for i := range list {
		if best == nil || list[i].score() > best.score() {
			best = &list[i]
		}
	}
	if best == nil {
		return nil
	}
	shortest := slices.MinFunc(best.Texts, func(a, b string) int { return len(a) - len(b) })
	if len(shortest) < 2 && (best.Fold || len(best.Texts) > 3) {
		return nil
	}
	return best
}

// score grows with the rarity of the most common text of the set.
func (l *Literals) score() int {
	worst := 1 << 30
	for _, t := range l.Texts {
		rarest := 0
		for i := range t {
			n := 0
			for _, c := range []byte(t[i:min(i+3, len(t))]) {
				n += Rarity(c)
			}
			rarest = max(rarest, n)
		}
		worst = min(worst, rarest+20*min(len(t), 10))
	}
	return worst - 8*len(l.Texts)
}

// common lists the bytes of source text, the most frequent first, counted in the source tree of Go.
const common = " e\tt0r\nnaiso,xlcfudp.1/():mg2\"=hSb_4TA3E{}y6vR\\8OICPDMk5LXF9wNVB7[]U*G-H!W+&Y<z;%|KQ>'qj`$ZJ#^?@"

// Rarity ranks a byte: 0 for the most frequent in source text, 255 for one
// that hardly occurs.
func Rarity(c byte) int {
	if i := strings.IndexByte(common, c); i >= 0 {
		return i
	}
	return 255
}
