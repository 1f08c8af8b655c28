package index

import "slices"

// Query selects texts. A selected text has, for each set, all keys of at least one of its strings, and at least one
// key of each list.
type Query struct {
	sets  [][][]uint32
	lists [][]uint32
}

// Require adds a condition: a text must hold at least one of the strings, in any case of letters. If one of them has
// no indexed key, every text may match, and no condition is added.
func (q *Query) Require(texts []string) {
	var set [][]uint32
	for _, text := range texts {
		list := slices.Compact(slices.Sorted(keysOf(text)))
		if len(list) == 0 {
			return
		}
		set = append(set, list)
	}
	if len(set) > 0 {
		q.sets = append(q.sets, set)
	}
}

const (
	// maxWindow is how many trigrams may stand for three characters of a run: with more
	// of them nearly every text has one.
	maxWindow = 8000
	// maxWindows is how many parts of a run are used: those with the fewest trigrams.
	maxWindows = 3
	// fewTexts is up to how many selected texts are not checked against the lists.
	fewTexts = 64
)

// RequireRun adds a condition: a text must hold a sequence of one character of each class, in any case of letters.
// Parts of the run that have only one trigram, or too many, are left out.
func (q *Query) RequireRun(run [][]byte) {
	var lists [][]uint32
	for i := 2; i < len(run); i++ {
		list := window(run[i-2], run[i-1], run[i])
		if len(list) > 1 && !slices.ContainsFunc(lists, func(l []uint32) bool { return slices.Equal(l, list) }) {
			lists = append(lists, list)
		}
	}
	slices.SortFunc(lists, func(a, b []uint32) int { return len(a) - len(b) })
	q.lists = append(q.lists, lists[:min(len(lists), maxWindows)]...)
}

// window lists the trigrams of three classes. It returns nil if they are too many, or some of them are not indexed.
func window(a, b, c []byte) (out []uint32) {
	a, b, c = foldedClass(a), foldedClass(b), foldedClass(c)
	if len(a)*len(b)*len(c) > maxWindow {
		return nil
	}
	for _, x := range a {
		for _, y := range b {
			for _, z := range c {
				out = append(out, uint32(x)<<16|uint32(y)<<8|uint32(z))
			}
		}
	}
	return out
}

// foldedClass returns the characters of a class in lower case, in order. It returns nil if some of them are not
// indexed.
func foldedClass(class []byte) (out []byte) {
	for _, c := range class {
		if kinds[c] != ascii {
			return nil
		}
		out = append(out, folded[c])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Selects reports whether the query has any condition.
func (q *Query) Selects() bool { return len(q.sets)+len(q.lists) > 0 }

// Select adds the texts of a segment that may match.
func (q *Query) Select(s *Segment, to *Set) {
	var selected, union, list []uint32
	for i, set := range q.sets {
		union = union[:0]
		for _, all := range set {
			list = s.containing(all, list[:0])
			union = append(union, list...)
		}
		if len(set) > 1 {
			slices.Sort(union)
			union = slices.Compact(union)
		}
		if i == 0 {
			selected = append(selected, union...)
		} else {
			selected, _ = intersect(selected[:0], selected, union)
		}
		if len(selected) == 0 {
			return
		}
	}
	if len(q.sets) > 0 && len(selected) <= fewTexts {
		to.addAll(selected)
		return
	}
	for i, anyOf := range q.lists {
		var have Set
		for _, t := range anyOf {
			if p, ok := s.find(t); ok {
				list = s.decode(p, list[:0])
				have.addAll(list)
			}
		}
		if i == 0 && len(q.sets) == 0 {
			selected = slices.AppendSeq(selected, have.All())
			continue
		}
		selected = slices.DeleteFunc(selected, func(id uint32) bool { return !have.Has(id) })
	}
	to.addAll(selected)
}

func (s *Set) addAll(ids []uint32) {
	for _, id := range ids {
		s.Add(id)
	}
}
