package search

import (
	"encoding/binary"
	"math"
	"strings"

	"toolhost/builtin/internal/search/glob"
)

// wanted is what a Glob asks for.
type wanted struct {
	match func(rel string) bool
	names nameSet // the names of all that matches are in it
	named bool    // and of nothing else
}

// newWanted returns what a pattern asks for, of paths that are made relative to where it starts.
func newWanted(p *fileName, relative func(rel string) string) *wanted {
	ends := p.NameEnds()
	whole := func(e glob.NameEnds) bool { return len(e.First) <= endBytes && len(e.Last) <= endBytes }
	return &wanted{
		match: func(rel string) bool { return p.Match(relative(rel)) },
		names: newNameSet(ends), named: p.EndsDecide() && whole(ends[0]),
	}
}

// has reports whether a file of a listing is wanted, of which paths may be nil.
func (w *wanted) has(l *listing, paths *paths, i int) bool {
	if paths == nil {
		return w.match(l.files[i].rel())
	}
	return w.names.has(paths.names[i]) && (w.named || w.match(paths.at(i)))
}

// paths are the paths of a listing's files from the root, one after the other in memory,
// and what their names begin and end with: to look at all of them where they are takes
// many times as long.
type paths struct {
	all   string
	ends  []uint32
	names []nameEnds
}

// at returns the path of the file with that number.
func (p *paths) at(i int) string {
	start := uint32(0)
	if i > 0 {
		start = p.ends[i-1]
	}
	return p.all[start:p.ends[i]]
}

// paths packs the paths of a listing that will be used again, once.
func (l *listing) paths() *paths {
	if l.snapshot == nil || l.dates == nil {
		return nil
	}
	l.snapshot.packing.Do(func() {
		var all strings.Builder
		p := &paths{ends: make([]uint32, len(l.files)), names: make([]nameEnds, len(l.files))}
		for i, f := range l.files {
			all.WriteString(f.rel())
			p.ends[i] = uint32(all.Len())
			p.names[i] = endsOf(f.name)
		}
		if p.all = all.String(); len(p.all) <= math.MaxUint32 {
			l.snapshot.packed = p
		}
	})
	return l.snapshot.packed
}

// endBytes is how many bytes of an end are compared at once.
const endBytes = 8

// nameEnds are the first and the last bytes of a name, as numbers. Where the name is
// shorter there are zeros, which no name holds.
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

// nameSet is a set of names by their ends: those which, where a mask has bits, have the
// bits of an end.
type nameSet []struct{ ends, mask nameEnds }

// newNameSet returns the set of the names that have one of the ends.
func newNameSet(ends []glob.NameEnds) nameSet {
	s := make(nameSet, len(ends))
	for i, e := range ends {
		first, last := e.First[:min(len(e.First), endBytes)], e.Last[max(0, len(e.Last)-endBytes):]
		ones := strings.Repeat("\xff", endBytes)
		s[i].ends = nameEnds{endsOf(first).first, endsOf(last).last}
		s[i].mask = nameEnds{endsOf(ones[:len(first)]).first, endsOf(ones[:len(last)]).last}
	}
	return s
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
