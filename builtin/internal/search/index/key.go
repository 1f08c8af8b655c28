package index

import "slices"

// keysOf lists the keys of a text, each once, in order: what Builder.Add finds in a text
// that holds it, or fewer.
func keysOf(text string) (list []uint32) {
	bytes, alike, last := uint64(0), 0, none
	for i := range len(text) {
		c := text[i]
		bytes = bytes<<8 | uint64(folded[c])
		k := kinds[c]
		if k != last {
			alike, last = 0, k
		}
		if alike++; alike < 3 || k == none {
			continue
		}
		list = append(list, uint32(bytes)&(trigrams-1))
	}
	slices.Sort(list)
	return slices.Compact(list)
}
