package index

import "iter"

// keys is greater than every key.
const (
	jointBits = 15
	keys      = trigrams + 1<<jointBits
)

// joint is the key of the last five bytes, if they are a joint.
func joint(bytes uint64) uint32 {
	const spread = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio
	return trigrams + uint32(bytes<<24*spread>>(64-jointBits))
}

// joins reports whether the last five bytes are a joint, if they are text: a space in their middle that is not within
// an indentation. Joints select texts that trigrams do not: most texts with "struct" and "mutex" have the trigrams of
// "struct mutex" too.
func joins(bytes uint64) bool {
	before := byte(bytes >> 24)
	return byte(bytes>>16) == ' ' && before != ' ' && before != '\t'
}

// keysOf yields the keys of a text, some of them several times. The keys of a text include those of each of its parts.
func keysOf[T string | []byte](text T) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
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
			if !yield(uint32(bytes)&(trigrams-1)) || joins(bytes) && alike >= 5 && !yield(joint(bytes)) {
				return
			}
		}
	}
}
