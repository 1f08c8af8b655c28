package glob

import (
	"fmt"
	"strings"
)

// expand replaces alternations by all the patterns they stand for. An empty
// alternative is left out unless it is the only one, as in globset.
func expand(p string, o Options) ([]string, error) {
	open, end, commas, err := braces(p, o)
	if err != nil || open < 0 {
		return []string{p}, err
	}
	var out []string
	tails, err := expand(p[end+1:], o)
	if err != nil {
		return nil, err
	}
	from, size := open+1, 0
	for _, to := range append(commas, end) {
		part := p[from:to]
		from = to + 1
		if part == "" && len(commas) > 0 {
			continue
		}
		heads, err := expand(part, o)
		if err != nil {
			return nil, err
		}
		if len(out)+len(heads)*len(tails) > MaxAlternatives {
			return nil, ErrTooMany
		}
		for _, h := range heads {
			for _, t := range tails {
				if size += open + len(h) + len(t); size > MaxExpanded {
					return nil, ErrExpanded
				}
				out = append(out, p[:open]+h+t)
			}
		}
	}
	if len(out) == 0 {
		for _, t := range tails {
			out = append(out, p[:open]+t)
		}
	}
	return out, nil
}

// braces finds the first outer alternation: the positions of its braces and
// of the commas between its alternatives; open is -1 when there is none.
func braces(p string, o Options) (open, end int, commas []int, err error) {
	open, depth := -1, 0
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case '[':
			if j := classEnd(p, i); j > 0 {
				i = j
			} else if !o.OpenClass {
				return 0, 0, nil, at(ErrClass, i)
			}
		case '{':
			if depth == 0 {
				open = i
			}
			depth++
		case ',':
			if depth == 1 {
				commas = append(commas, i)
			}
		case '}':
			if depth == 0 {
				return 0, 0, nil, at(ErrUnopened, i)
			}
			if depth--; depth == 0 {
				return open, i, commas, nil
			}
		}
	}
	if depth > 0 {
		return 0, 0, nil, at(ErrUnclosed, open)
	}
	return -1, 0, nil, nil
}

// classEnd returns the index of the `]` that closes the class opened at i,
// or 0. A `]` right after the opening, or after the negation, is a member.
func classEnd(p string, i int) int {
	j := i + 1
	if j < len(p) && (p[j] == '!' || p[j] == '^') {
		j++
	}
	j++
	if j > len(p) {
		return 0
	}
	if k := strings.IndexByte(p[j:], ']'); k >= 0 {
		return j + k
	}
	return 0
}

func at(err error, pos int) error { return fmt.Errorf("%w, at character %d", err, pos+1) }

// parse turns a pattern without alternations into its steps.
func parse(p string, o Options) ([]op, error) {
	ops := make([]op, 0, len(p))
	for i := 0; i < len(p); i++ {
		switch c := p[i]; c {
		case '?':
			ops = append(ops, op{kind: opAny})
		case '*':
			var n int
			ops, n = star(ops, p, i)
			i += n - 1
		case '\\':
			if i++; i == len(p) {
				return nil, ErrEscape
			}
			ops = append(ops, op{kind: opByte, c: p[i]})
		case '[':
			end := classEnd(p, i)
			if end == 0 {
				if !o.OpenClass {
					return nil, at(ErrClass, i)
				}
				ops = append(ops, op{kind: opByte, c: c})
				continue
			}
			set, err := class(p[i+1 : end])
			if err != nil {
				return nil, at(err, i)
			}
			ops = append(ops, op{kind: opClass, class: set})
			i = end
		default:
			ops = append(ops, op{kind: opByte, c: c})
		}
	}
	if len(ops) == 1 && ops[0].kind == opDirs { // `**/` alone is `**`
		ops[0].kind = opRest
	}
	return ops, nil
}

// star parses the stars at p[i] and returns how many bytes it took. Two stars
// that are a whole path element span directories; else they are one star.
func star(ops []op, p string, i int) ([]op, int) {
	n := 1
	starts := i == 0 || p[i-1] == '/'
	if i+1 < len(p) && p[i+1] == '*' {
		n = 2
	}
	switch {
	case n == 2 && starts && i+2 == len(p):
		if i == 0 {
			return append(ops, op{kind: opRest}), n
		}
		if k := len(ops) - 1; ops[k].kind == opDirs { // **/** is **
			ops[k].kind = opRest
			return ops, n
		}
		return append(ops, op{kind: opRest}), n
	case n == 2 && starts && p[i+2] == '/':
		if k := len(ops) - 1; k >= 0 && ops[k].kind == opDirs {
			return ops, n + 1
		}
		return append(ops, op{kind: opDirs}), n + 1
	}
	if k := len(ops) - 1; k >= 0 && ops[k].kind == opStar {
		return ops, n
	}
	return append(ops, op{kind: opStar}), n
}

// class parses what is between the brackets. There are no escapes and no
// named classes in it, as in globset.
func class(s string) (*[4]uint64, error) {
	var set [4]uint64
	negated := s[0] == '!' || s[0] == '^'
	if negated {
		s = s[1:]
	}
	for i := 0; i < len(s); i++ {
		lo, hi := s[i], s[i]
		if i+2 < len(s) && s[i+1] == '-' {
			hi = s[i+2]
			i += 2
		}
		if lo > hi {
			return nil, ErrRange
		}
		for c := int(lo); c <= int(hi); c++ {
			set[c>>6] |= 1 << (c & 63)
		}
	}
	if negated {
		for k := range set {
			set[k] = ^set[k]
		}
	}
	return &set, nil
}
