package search

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/builtin/internal/search/glob"
)

// pathSet selects the paths that a Glob asks for.
type pathSet struct {
	match func(rel string) bool
	names nameSet // contains the names of all paths that match
	named bool    // a path matches exactly if names contains its name
}

// newPathSet returns the set of the paths that match a pattern. relative makes a path relative to the directory that
// the pattern starts from.
func newPathSet(p *fileName, relative func(rel string) string) *pathSet {
	if p.alike {
		return &pathSet{match: func(rel string) bool { return p.Match(relative(rel)) }, names: make(nameSet, 1)}
	}
	ends := p.NameEnds()
	whole := func(e glob.NameEnds) bool { return len(e.First) <= endBytes && len(e.Last) <= endBytes }
	return &pathSet{
		match: func(rel string) bool { return p.Match(relative(rel)) },
		names: newNameSet(ends), named: p.EndsDecide() && whole(ends[0]),
	}
}

// among appends the numbers in [from, to) of the listed files whose paths are in the set. paths may be nil.
func (w *pathSet) among(l *listing, paths *paths, from, to int, out []int32) []int32 {
	if paths == nil {
		for i := from; i < to; i++ {
			if w.match(l.files[i].rel()) {
				out = append(out, int32(i))
			}
		}
		return out
	}
	out = w.names.among(paths, from, to, out)
	if !w.named {
		out = slices.DeleteFunc(out, func(i int32) bool { return !w.match(paths.at(int(i))) })
	}
	return out
}

// paths holds the paths of a listing's files contiguously in memory, and the first and last bytes of their names.
// Without it BenchmarkEngine/glob follows a pointer for each file, which takes many times as long.
type paths struct {
	all  string
	ends []uint32
	// firsts and lasts are the nameEnds of all files.
	firsts, lasts []uint64
}

// at returns the path of the file with that number.
func (p *paths) at(i int) string {
	start := uint32(0)
	if i > 0 {
		start = p.ends[i-1]
	}
	return p.all[start:p.ends[i]]
}

// paths returns the packed paths of a listing that comes from a snapshot, otherwise nil. It packs them once.
func (l *listing) paths() *paths {
	if l.snapshot == nil {
		return nil
	}
	l.snapshot.packing.Do(func() {
		var all strings.Builder
		n := len(l.files)
		p := &paths{ends: make([]uint32, n), firsts: make([]uint64, n), lasts: make([]uint64, n)}
		for i, f := range l.files {
			all.WriteString(f.rel())
			p.ends[i] = uint32(all.Len())
			e := endsOf(f.name)
			p.firsts[i], p.lasts[i] = e.first, e.last
		}
		if p.all = all.String(); len(p.all) <= math.MaxUint32 {
			l.snapshot.packed = p
		}
	})
	return l.snapshot.packed
}

// endBytes is how many bytes at each end of a name are compared.
const endBytes = 8

// nameEnds are the first and the last eight bytes of a name, as numbers. A shorter name is padded with zeros, which
// no name contains.
type nameEnds struct{ first, last uint64 }

func endsOf(name string) (e nameEnds) {
	var b [endBytes]byte
	copy(b[:], name)
	e.first = binary.LittleEndian.Uint64(b[:])
	clear(b[:])
	copy(b[max(0, len(b)-len(name)):], name[max(0, len(name)-len(b)):])
	e.last = binary.LittleEndian.Uint64(b[:])
	return e
}

// nameSet is a set of names by their ends: a name is in it if its nameEnds equal those of an element in all bits of
// the element's mask.
type nameSet []struct{ ends, mask nameEnds }

// newNameSet returns the set of the names that begin and end as one of ends says. It compares endBytes bytes at most.
func newNameSet(ends []glob.NameEnds) nameSet {
	const ones = "\xff\xff\xff\xff\xff\xff\xff\xff" // endBytes of them
	s := make(nameSet, len(ends))
	for i, e := range ends {
		first, last := e.First[:min(len(e.First), endBytes)], e.Last[max(0, len(e.Last)-endBytes):]
		s[i].ends = nameEnds{endsOf(first).first, endsOf(last).last}
		s[i].mask = nameEnds{endsOf(ones[:len(first)]).first, endsOf(ones[:len(last)]).last}
	}
	return s
}

// among appends the numbers in [from, to) of the paths whose names are in the set.
func (s nameSet) among(p *paths, from, to int, out []int32) []int32 {
	if len(s) == 1 {
		switch k := &s[0]; {
		case k.mask.first == 0:
			return masked(p.lasts[:to], from, k.mask.last, k.ends.last, out)
		case k.mask.last == 0:
			return masked(p.firsts[:to], from, k.mask.first, k.ends.first, out)
		}
	}
	for i := from; i < to; i++ {
		if s.has(nameEnds{p.firsts[i], p.lasts[i]}) {
			out = append(out, int32(i))
		}
	}
	return out
}

// masked appends the indexes, from one on, of the numbers that equal want in the bits of mask.
func masked(all []uint64, from int, mask, want uint64, out []int32) []int32 {
	n := len(out)
	out = slices.Grow(out, len(all)-from+1)[:n+len(all)-from+1]
	i := from
	for ; i+4 <= len(all); i += 4 {
		a, b, c, d := all[i]&mask^want, all[i+1]&mask^want, all[i+2]&mask^want, all[i+3]&mask^want
		if a != 0 && b != 0 && c != 0 && d != 0 {
			continue
		}
		// Without branches: the processor could not predict which of them are wanted.
		for k, differs := range [4]uint64{a, b, c, d} {
			out[n] = int32(i + k)
			n += int((differs - 1) &^ differs >> 63) // 1 if it is 0
		}
	}
	for ; i < len(all); i++ {
		if all[i]&mask == want {
			out[n] = int32(i)
			n++
		}
	}
	return out[:n]
}

func (s nameSet) has(n nameEnds) bool {
	for i := range s {
		k := &s[i]
		if n.first&k.mask.first == k.ends.first && n.last&k.mask.last == k.ends.last {
			return true
		}
	}
	return false
}
