package readstate

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"testing"
)

// Bytes that only look the same are not taken for one another.
func TestContentsApart(t *testing.T) {
	c := newContents(100, 100)
	b := c.put([]byte("bb"))
	c.byQuick[b.quick] = c.put([]byte("b"))
	for range 2 {
		if got := c.touch(c.put([]byte("b"), []byte("b"))); string(got) != "bb" {
			t.Errorf("kept as %q", got)
		}
	}
	if got := c.find(HashOf([]byte("bb"))); got != nil {
		t.Errorf("%q was found by a hash that nobody took", got)
	}
	if hash := c.hashOf(b); hash != HashOf([]byte("bb")) || string(c.find(hash)) != "bb" {
		t.Errorf("hash %x, found as %q", hash, c.find(hash))
	}
}

// What is let go leaves its hash, and nothing else; what is kept stays within the budget.
func TestContentsLetGo(t *testing.T) {
	c := newContents(4, 3)
	a, b := c.put([]byte("aaa")), c.put([]byte("b"))
	c.touch(a)
	d := c.put([]byte("d"))
	for _, want := range []struct {
		k    *content
		text string
		kept bool
	}{{a, "aaa", true}, {b, "b", false}, {d, "d", true}} {
		if got := c.touch(want.k); (got != nil) != want.kept {
			t.Errorf("%s is kept as %q", want.text, got)
		}
		if c.hashOf(want.k) != HashOf([]byte(want.text)) {
			t.Errorf("%s has another hash", want.text)
		}
		if got := c.find(HashOf([]byte(want.text))); (got != nil) != want.kept {
			t.Errorf("%s is found as %q", want.text, got)
		}
	}
	if c.put([]byte("eeee")) != nil || c.put() != nil || c.bytes != 4 || c.byUse.Len() != 2 || len(c.byQuick) != 2 ||
		len(c.byHash) != 2 {
		t.Errorf("%d bytes of %d, %d by quick, %d by hash", c.bytes, c.byUse.Len(), len(c.byQuick), len(c.byHash))
	}
}

// Many put, ask and hash at once while others are let go.
func TestContentsAtOnce(t *testing.T) {
	c := newContents(50, 10)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 300 {
				text := fmt.Appendf(nil, "%d", (g+i)%20)
				k := c.put(text)
				if got := c.touch(k); got != nil && !bytes.Equal(got, text) {
					t.Errorf("%q is kept as %q", text, got)
				}
				if i%3 == 0 && c.hashOf(k) != HashOf(text) {
					t.Errorf("%q has another hash", text)
				}
				if got := c.find(HashOf(text)); got != nil && !bytes.Equal(got, text) {
					t.Errorf("%q is found as %q", text, got)
				}
			}
		})
	}
	all.Wait()
	sum := int64(0)
	for e := c.byUse.Front(); e != nil; e = e.Next() {
		sum += int64(len(e.Value.(*content).data))
	}
	if sum != c.bytes || sum > c.max {
		t.Errorf("%d bytes, counted as %d, in a budget of %d", sum, c.bytes, c.max)
	}
}

// Of a file that changes, what was seen last is kept, and whatever else somebody may still ask for.
func TestContentsReplaced(t *testing.T) {
	hash := func(text string) version { return version{Hash: HashOf([]byte(text)), Hashed: true} }
	type step struct {
		scope, path, text string
		v                 version
		page              bool
	}
	for _, test := range []struct {
		name  string
		steps []step
		want  []string // what is kept at the end
	}{
		{"read again", []step{{text: "one"}, {text: "two"}, {text: "three"}}, []string{"three"}},
		{"read again as it was", []step{{text: "one"}, {text: "one"}}, []string{"one"}},
		{"edited, and edited again", []step{{text: "one"}, {text: "two", v: hash("two")}, {text: "three", v: hash("three")}}, []string{"three"}},
		{"back to what it was", []step{{text: "one"}, {text: "two", v: hash("two")}, {text: "one", v: hash("one")}}, []string{"one"}},
		{"another file has it", []step{{text: "one"}, {path: "/g", text: "one"}, {text: "two"}}, []string{"one", "two"}},
		{"no file has it any more", []step{{text: "one"}, {path: "/g", text: "one"}, {text: "two"}, {path: "/g", text: "two"}}, []string{"two"}},
		{"another scope has it", []step{{text: "one"}, {scope: "b", text: "one", v: hash("one")}, {text: "two"}}, []string{"one", "two"}},
		{"shown as a page too", []step{{text: "one"}, {path: "/g", text: "one", page: true}, {text: "two"}}, []string{"one", "two"}},
		{"a page of another version", []step{{text: "one"}, {text: "two", page: true, v: version{Size: 9}}}, []string{"two"}},
		{"too large to be kept", []step{{text: "one"}, {text: "longer than ten"}}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := open(t, Config{MaxKept: 100, MaxFile: 10})
			size := int64(0)
			for _, s := range test.steps {
				scope, path := store.Scope(s.scope, false), "/f"
				if s.path != "" {
					path = s.path
				}
				if s.page {
					scope.MarkPartRead(path, s.v, Part{FirstLine: 1, Lines: 1}, []byte(s.text))
				} else {
					scope.MarkRead(path, s.v, []byte(s.text))
				}
			}
			for _, text := range test.want {
				size += int64(len(text))
			}
			c := store.kept
			for _, s := range test.steps { // also who knows the hash of what is gone finds nothing
				want := slices.Contains(test.want, s.text)
				if kept(c, s.text) != want {
					t.Errorf("%q is kept: %v, want %v", s.text, !want, want)
				}
				if !want && c.find(HashOf([]byte(s.text))) != nil {
					t.Errorf("%q is found by its hash", s.text)
				}
			}
			if c.bytes != size || c.byUse.Len() != len(test.want) || len(c.byQuick) != len(test.want) ||
				len(c.byHash) > len(test.want) {
				t.Errorf("%d bytes of %d, %d by quick, %d by hash; want %q", c.bytes, c.byUse.Len(), len(c.byQuick),
					len(c.byHash), test.want)
			}
		})
	}
}

// Who looks at a content that is not kept any more has its bytes and its hash still, as a call has that compares while another reads.
func TestContentsReplacedWhileLookedAt(t *testing.T) {
	store := open(t, Config{})
	scope := store.Scope("", false)
	scope.MarkRead("/f", version{}, []byte("one"))
	was := store.enter("", false).files["/f"]
	scope.MarkRead("/f", version{}, []byte("two"))
	if st := scope.compare(was, []byte("one")); st.State != Current || string(st.Old) != "one" ||
		st.Hash != HashOf([]byte("one")) {
		t.Errorf("%+v, want what was seen", st)
	}
	if len(store.kept.byHash) != 0 {
		t.Error("the hash of what is not kept was kept")
	}
}

// kept reports whether bytes are kept, without counting them as used.
func kept(c *contents, text string) bool {
	for _, k := range c.byQuick {
		if string(k.data) == text {
			return true
		}
	}
	return false
}
