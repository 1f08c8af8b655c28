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
		if got := appendAll(nil, b, maxID); !slices.Equal(got, list) {
			t.Errorf("%v: read %v", list, got)
		}
		most := list[len(list)/2]
		if got, want := appendAll(nil, b, most), list[:len(list)/2+1]; !slices.Equal(got, want) {
			t.Errorf("%v up to %d: read %v", list, most, got)
		}
		var all, spare []uint32
		for i := range list {
			all = append(all, list[i], list[i]+1)
		}
		all = slices.Compact(all)
		if got := intersectList(all, b, &spare, maxID); !slices.Equal(got, list) {
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
		if got := intersectList(all, merged.list(p), &spare, merged.most); !slices.Equal(got, want) {
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

// FuzzList: whatever is read as postings ascends and ends, and is the same when it is written again.
func FuzzList(f *testing.F) {
	f.Add(appendList(nil, []uint32{1, 2, 900}))
	f.Add(appendList(nil, []uint32{1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 14}))
	f.Add([]byte{0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, b []byte) {
		const most = 1 << 20
		list := appendAll(nil, b, most)
		for i, id := range list {
			if id > most || i > 0 && id <= list[i-1] {
				t.Fatalf("%d of %v", i, list)
			}
		}
		if len(list) == 0 {
			return
		}
		if got := appendAll(nil, appendList(nil, list), most); fmt.Sprint(got) != fmt.Sprint(list) {
			t.Errorf("%v written again: %v", list, got)
		}
		var spare []uint32
		if got := intersectList(slices.Clone(list), b, &spare, most); !slices.Equal(got, list) {
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
				out = appendAll(out[:0], all, 1<<20)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(list)), "ns/posting")
		})
	}
}
