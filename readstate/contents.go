package readstate

import (
	"bytes"
	"container/list"
	"hash/maphash"
	"slices"
	"sync"
)

// contents keeps bytes within a budget. It drops the least recently used first, and at once those that no record can
// ask for any more. Bytes that two scopes saw are kept once, and only a scope that has the hash, because it saw the
// bytes, can ask for them.
type contents struct {
	max, maxOne int64
	seed        maphash.Seed

	mu      sync.Mutex
	bytes   int64
	byQuick map[uint64]*content
	byHash  map[[32]byte]*content // those whose hash was taken
	byUse   *list.List            // of *content, most recently used first
}

// A content is the bytes that were seen. Its hash is computed on first use, or when the bytes are dropped: hashing at
// every Read would be a large part of its cost, and most files that are read are never changed.
type content struct {
	quick uint64 // tells what may be the same bytes, in this process

	once sync.Once
	hash [32]byte

	// Guarded by contents.mu.
	data    []byte        // nil once dropped
	use     *list.Element // nil once it is not kept
	records int           // how many refer to it
	page    bool          // it was shown as a page, which is asked for by its hash
	hashed  bool          // its hash is known
}

func newContents(limit, maxOne int64) *contents {
	return &contents{
		max: limit, maxOne: min(maxOne, limit), seed: maphash.MakeSeed(),
		byQuick: make(map[uint64]*content), byHash: make(map[[32]byte]*content), byUse: list.New(),
	}
}

// put keeps a joined copy of the pieces and returns it; nil if they are empty or too large.
func (c *contents) put(pieces ...[]byte) *content {
	var quick maphash.Hash
	quick.SetSeed(c.seed)
	size := int64(0)
	for _, piece := range pieces {
		if size += int64(len(piece)); size > c.maxOne {
			return nil
		}
		quick.Write(piece)
	}
	if size == 0 {
		return nil
	}
	sum := quick.Sum64()
	if k := c.same(sum, pieces); k != nil {
		return k
	}
	k, old := c.add(&content{quick: sum, data: slices.Concat(pieces...)})
	for _, o := range old {
		c.release(o)
	}
	return k
}

// add adds a content, unless another call has kept the same bytes meanwhile. It returns the kept content of these
// bytes, and those now beyond the budget.
func (c *contents) add(k *content) (kept *content, old []*content) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if other := c.byQuick[k.quick]; other != nil && bytes.Equal(other.data, k.data) {
		return other, nil
	}
	k.use = c.byUse.PushFront(k)
	c.byQuick[k.quick] = k
	c.bytes += int64(len(k.data))
	return k, c.overBudget()
}

// same returns the kept content of the same bytes, if any.
func (c *contents) same(quick uint64, pieces [][]byte) *content {
	c.mu.Lock()
	k := c.byQuick[quick]
	c.mu.Unlock()
	rest := c.touch(k)
	for _, piece := range pieces {
		var ok bool
		if rest, ok = bytes.CutPrefix(rest, piece); !ok {
			return nil
		}
	}
	if len(rest) > 0 {
		return nil
	}
	return k
}

// overBudget removes contents beyond the budget from the list. Callers hold c.mu, and release the contents after
// unlocking it.
func (c *contents) overBudget() (old []*content) {
	for c.bytes > c.max {
		k := c.byUse.Back().Value.(*content)
		c.unlist(k)
		old = append(old, k)
	}
	return old
}

// unlist removes a content from the list, so that no new bytes are matched with it. Callers hold c.mu.
func (c *contents) unlist(k *content) {
	c.byUse.Remove(k.use)
	k.use = nil
	c.bytes -= int64(len(k.data))
	if c.byQuick[k.quick] == k {
		delete(c.byQuick, k.quick)
	}
}

// replaced records that a record now refers to one content and no longer to another; either may be nil. A content
// without records is dropped: otherwise a file that is read again and again as it changes would fill the budget.
// Callers that are still using it keep its bytes.
func (c *contents) replaced(old, now *content) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now != nil {
		now.records++
	}
	if old == nil {
		return
	}
	if old.records--; old.records > 0 || old.page || old.use == nil {
		return
	}
	c.unlist(old)
	if old.hashed && c.byHash[old.hash] == old {
		delete(c.byHash, old.hash)
	}
}

// release replaces the bytes of a content by their hash.
func (c *contents) release(k *content) {
	hash := c.hashOf(k)
	c.mu.Lock()
	defer c.mu.Unlock()
	k.data = nil
	if c.byHash[hash] == k {
		delete(c.byHash, hash)
	}
}

// hashOf returns the hash of a content, whose bytes may have been dropped.
func (c *contents) hashOf(k *content) [32]byte {
	k.once.Do(func() { c.setHash(k, HashOf(k.data)) }) // the bytes are not dropped before this is done
	return k.hash
}

// setHash sets the hash of a content. Callers are within its once.
func (c *contents) setHash(k *content, hash [32]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k.hash, k.hashed = hash, true
	if k.use != nil {
		c.byHash[hash] = k
	}
}

// ensureHash returns a record of a whole file with the hash in its version.
func (c *contents) ensureHash(r record) record {
	if r.content != nil && !r.version.Hashed {
		r.version.Hash, r.version.Hashed = c.hashOf(r.content), true
	}
	return r
}

// hashed is put for bytes with a known hash.
func (c *contents) hashed(hash [32]byte, pieces ...[]byte) *content {
	k := c.put(pieces...)
	if k != nil {
		k.once.Do(func() { c.setHash(k, hash) })
	}
	return k
}

// shown keeps a page.
func (c *contents) shown(hash [32]byte, page []byte) {
	if k := c.hashed(hash, page); k != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		k.page = true
	}
}

// find returns the bytes with a hash, nil if they are not kept.
func (c *contents) find(hash [32]byte) []byte {
	c.mu.Lock()
	k := c.byHash[hash]
	c.mu.Unlock()
	return c.touch(k)
}

// touch returns the bytes of a content, nil if they are not kept, and marks it as used.
func (c *contents) touch(k *content) []byte {
	if k == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.use != nil {
		c.byUse.MoveToFront(k.use)
	}
	return k.data
}
