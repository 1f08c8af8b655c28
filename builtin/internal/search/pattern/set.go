package pattern

import (
	"slices"
	"sync"
	"unicode"
)

// set is a set of runes as ascending, disjoint pairs of first and last, the
// form of syntax.Regexp.Rune.
type set []rune

// newSet sorts and merges pairs that may overlap.
func newSet(pairs []rune) set {
	type pair struct{ lo, hi rune }
	ps := make([]pair, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		ps = append(ps, pair{pairs[i], pairs[i+1]})
	}
	slices.SortFunc(ps, func(a, b pair) int { return int(a.lo - b.lo) })
	var out set
	for _, p := range ps {
		if n := len(out); n > 0 && p.lo <= out[n-1]+1 {
			out[n-1] = max(out[n-1], p.hi)
			continue
		}
		out = append(out, p.lo, p.hi)
	}
	return out
}

func (s set) union(t set) set { return newSet(slices.Concat(s, t)) }

func (s set) negate() set {
	var out set
	next := rune(0)
	for i := 0; i < len(s); i += 2 {
		if s[i] > next {
			out = append(out, next, s[i]-1)
		}
		next = s[i+1] + 1
	}
	if next <= unicode.MaxRune {
		out = append(out, next, unicode.MaxRune)
	}
	return out
}

func (s set) intersect(t set) set { return s.negate().union(t.negate()).negate() }
func (s set) minus(t set) set     { return s.intersect(t.negate()) }

func (s set) has(r rune) bool {
	lo, hi := 0, len(s)/2
	for lo < hi {
		mid := (lo + hi) / 2
		switch {
		case r < s[2*mid]:
			hi = mid
		case r > s[2*mid+1]:
			lo = mid + 1
		default:
			return true
		}
	}
	return false
}

// size is the number of runes, or at least limit.
func (s set) size(limit int) int {
	n := 0
	for i := 0; i < len(s) && n < limit; i += 2 {
		n += int(s[i+1]-s[i]) + 1
	}
	return n
}

// fold adds every rune that differs from a member in case only.
func (s set) fold() set {
	pairs := slices.Clone(s)
	add := func(r rune) {
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			pairs = append(pairs, f, f)
		}
	}
	const few = 512
	if s.size(few) < few {
		for i := 0; i < len(s); i += 2 {
			for r := s[i]; r <= s[i+1]; r++ {
				add(r)
			}
		}
		return newSet(pairs)
	}
	for _, r := range cased() {
		if s.has(r) {
			add(r)
		}
	}
	return newSet(pairs)
}

// cased lists the runes that have another case.
var cased = sync.OnceValue(func() []rune {
	var out []rune
	for _, c := range unicode.CaseRanges {
		for r := rune(c.Lo); r <= rune(c.Hi); r++ {
			if unicode.SimpleFold(r) != r {
				out = append(out, r)
			}
		}
	}
	return out
})

func tableSet(tables ...*unicode.RangeTable) set {
	var pairs []rune
	add := func(lo, hi, stride rune) {
		if stride == 1 {
			pairs = append(pairs, lo, hi)
			return
		}
		for r := lo; r <= hi; r += stride {
			pairs = append(pairs, r, r)
		}
	}
	for _, t := range tables {
		for _, r := range t.R16 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range t.R32 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	return newSet(pairs)
}

// The Perl classes by UTS #18, annex C, as Rust has them.
var (
	wordSet = sync.OnceValue(func() set {
		return tableSet(unicode.L, unicode.Nl, unicode.Other_Alphabetic, unicode.M, unicode.Nd, unicode.Pc,
			unicode.Join_Control)
	})
	digitSet = sync.OnceValue(func() set { return tableSet(unicode.Nd) })
	spaceSet = sync.OnceValue(func() set { return tableSet(unicode.White_Space) })
)

// IsWord reports whether `\w` matches the rune. It does not match a negative one.
func IsWord(r rune) bool {
	if r < 0x80 {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_'
	}
	return wordSet().has(r)
}

// asciiClasses are the names of `[[:name:]]`.
var asciiClasses = map[string]set{
	"alnum":  {'0', '9', 'A', 'Z', 'a', 'z'},
	"alpha":  {'A', 'Z', 'a', 'z'},
	"ascii":  {0, 0x7f},
	"blank":  {'\t', '\t', ' ', ' '},
	"cntrl":  {0, 0x1f, 0x7f, 0x7f},
	"digit":  {'0', '9'},
	"graph":  {'!', '~'},
	"lower":  {'a', 'z'},
	"print":  {' ', '~'},
	"punct":  {'!', '/', ':', '@', '[', '`', '{', '~'},
	"space":  {'\t', '\r', ' ', ' '},
	"upper":  {'A', 'Z'},
	"word":   {'0', '9', 'A', 'Z', '_', '_', 'a', 'z'},
	"xdigit": {'0', '9', 'A', 'F', 'a', 'f'},
}

// property finds the set of `\p{name}`, with Unicode's loose matching of names.
func property(name string) (set, bool) {
	if key, value, ok := cutAny(name, "=:"); ok {
		switch normalizeName(key) {
		case "gc", "generalcategory", "sc", "script":
			name = value
		default: // Go has no table of script extensions
			return nil, false
		}
	}
	switch want := normalizeName(name); want {
	case "any":
		return set{0, unicode.MaxRune}, true
	case "ascii":
		return set{0, 0x7f}, true
	case "assigned":
		return tableSet(unicode.Cn).negate(), true
	case "alphabetic", "alpha":
		return tableSet(unicode.L, unicode.Nl, unicode.Other_Alphabetic), true
	case "lowercase":
		return tableSet(unicode.Ll, unicode.Other_Lowercase), true
	case "uppercase":
		return tableSet(unicode.Lu, unicode.Other_Uppercase), true
	default:
		if s := derived(want); s != nil {
			return s, true
		}
		return namedTable(want)
	}
}

// derived returns the properties that Go has only parts of, or nothing; nil for others.
func derived(want string) set {
	identifier := func(more ...*unicode.RangeTable) set {
		s := tableSet(append(more, unicode.L, unicode.Nl, unicode.Other_ID_Start)...)
		return s.minus(tableSet(unicode.Pattern_Syntax, unicode.Pattern_White_Space))
	}
	continued := []*unicode.RangeTable{unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc, unicode.Other_ID_Continue}
	switch want {
	case "math":
		return tableSet(unicode.Sm, unicode.Other_Math)
	case "idstart", "ids":
		return identifier()
	case "idcontinue", "idc":
		return identifier(continued...)
	case "xidstart", "xids":
		return identifier().minus(properties()["idstart-xidstart"])
	case "xidcontinue", "xidc":
		return identifier(continued...).minus(properties()["idcontinue-xidcontinue"])
	}
	return properties()[want]
}

// namedTable looks a loosely spelt name up in Go's tables.
func namedTable(want string) (set, bool) {
	for alias, name := range unicode.CategoryAliases {
		if normalizeName(alias) == want {
			want = normalizeName(name)
			break
		}
	}
	for _, tables := range []map[string]*unicode.RangeTable{unicode.Categories, unicode.Scripts, unicode.Properties} {
		for name, t := range tables {
			if normalizeName(name) == want {
				return tableSet(t), true
			}
		}
	}
	return nil, false
}

func normalizeName(name string) string {
	out := make([]byte, 0, len(name))
	for i := range len(name) {
		switch c := name[i]; {
		case c == '_' || c == '-' || c == ' ':
		case 'A' <= c && c <= 'Z':
			out = append(out, c+'a'-'A')
		default:
			out = append(out, c)
		}
	}
	return string(out)
}
