package index

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestList: postings say what was written, however dense or far apart the texts are.
func TestList(t *testing.T) {
	draw := rand.New(rand.NewPCG(5, 5))
	lists := [][]uint32{{0}, {7}, {0, 1}, {0, 1, 2, 3, 4, 5, 6, 7, 8}, {0, maxID - 1}, {maxID - 1},
		{3, 4, 1 << 20, 1<<20 + 1}, {1, 2, 3, 500_000_000}}
	for _, gap := range []int{1, 2, 3, 5, 9, 40, 1000, 1 << 12} {
		for _, n := range []int{2, 3, 17, 400} {
			id, list := uint32(draw.IntN(300)), []uint32{}
			for range n {
				list = append(list, id)
				id += 1 + uint32(draw.IntN(gap))
				if draw.IntN(50) == 0 {
					id += uint32(draw.IntN(gap * 500)) // as between two directories
				}
			}
			lists = append(lists, list)
		}
	}
	for _, list := range lists {
		b := appendList(nil, list)
		if got := appendAll(nil, b); !slices.Equal(got, list) {
			t.Errorf("%v: read %v", list, got)
		}
		var all, spare []uint32
		for i := range list {
			all = append(all, list[i], list[i]+1)
		}
		all = slices.Compact(all)
		if got := intersectList(all, b, &spare); !slices.Equal(got, list) {
			t.Errorf("%v: kept %v", list, got)
		}
	}
}

// TestMergeLists: what two segments say of a key is read as one list, as blocks or anew, also where their texts overlap.
func TestMergeLists(t *testing.T) {
	draw := rand.New(rand.NewPCG(8, 8))
	var built [2]Builder
	for range 3000 {
		n := 1 + draw.IntN(700)
		from := 1 + draw.IntN(n)
		part := 1 + draw.IntN(12)
		var lists [2][]uint32
		for i, bounds := range [2][2]int{{0, from + draw.IntN(9)}, {from, n + from}} {
			for id := bounds[0]; id < bounds[1]; id++ {
				if draw.IntN(part) == 0 {
					lists[i] = append(lists[i], uint32(id))
					built[i].Add(uint32(id), []byte("key"))
				}
			}
		}
		merged := Merge(built[0].Flush(), built[1].Flush())
		want := slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(lists[0]), lists[1]...))))
		p, _ := merged.find('k'<<16 | 'e'<<8 | 'y')
		if got := merged.decode(p, nil); !slices.Equal(got, want) {
			t.Fatalf("%v and %v: read %v", lists[0], lists[1], got)
		}
		all := make([]uint32, n+from+9)
		for i := range all {
			all[i] = uint32(i)
		}
		var spare []uint32
		if got := intersectList(all, merged.list(p), &spare); !slices.Equal(got, want) {
			t.Fatalf("%v and %v: kept %v", lists[0], lists[1], got)
		}
	}
}

// TestListSize: dense postings take a bit a text, others little more than what tells them apart.
func TestListSize(t *testing.T) {
	draw := rand.New(rand.NewPCG(6, 6))
	for _, tt := range []struct {
		part int // one of so many texts has the trigram
		most float64
	}{{1, 1}, {2, 2}, {4, 4}, {16, 5.6}, {100, 8.3}} {
		var list []uint32
		for id := range uint32(100_000) {
			if draw.IntN(tt.part) == 0 {
				list = append(list, id)
			}
		}
		if bits := float64(8*len(appendList(nil, list))) / float64(len(list)); bits > tt.most+.1 {
			t.Errorf("one of %d: %.2f bits for each", tt.part, bits)
		}
	}
}

// FuzzList: what is written is read, whatever the gaps between the texts are.
func FuzzList(f *testing.F) {
	f.Add([]byte{1, 1, 200})
	f.Add([]byte{1, 1, 1, 1, 1, 1, 1, 1, 4, 1, 1})
	f.Add([]byte{0, 255, 255, 1, 128, 3})
	f.Fuzz(func(t *testing.T, gaps []byte) {
		var list []uint32
		id := uint32(0)
		for _, gap := range gaps {
			id += 1 + uint32(gap)
			if gap > 250 {
				id += uint32(gap) << 12
			}
			list = append(list, id)
		}
		if len(list) == 0 {
			return
		}
		b := appendList(nil, list)
		if got := appendAll(nil, b); !slices.Equal(got, list) {
			t.Errorf("%v: read %v", list, got)
		}
		var spare []uint32
		if got := intersectList(slices.Clone(list), b, &spare); !slices.Equal(got, list) {
			t.Errorf("%v: kept %v", list, got)
		}
	})
}

func BenchmarkRead(b *testing.B) {
	draw := rand.New(rand.NewPCG(6, 6))
	for _, part := range []int{2, 8, 64} {
		var list, out []uint32
		for id := range uint32(100_000) {
			if draw.IntN(part) == 0 {
				list = append(list, id)
			}
		}
		all := appendList(nil, list)
		b.Run(fmt.Sprint(part), func(b *testing.B) {
			for b.Loop() {
				out = appendAll(out[:0], all)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(list)), "ns/posting")
		})
	}
}
