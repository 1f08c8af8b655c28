package readstate

import (
	"bytes"
	"fmt"
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
	if c.put([]byte("eeee")) != nil || c.put() != nil || c.bytes != 4 || c.byUse.Len() != 2 || len(c.byQuick) != 2 || len(c.byHash) != 2 {
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
