package search

import (
	"sync"
	"sync/atomic"
)

// textCache bounds what an engine keeps in memory of all its trees: their indexes, and the
// texts of files. When the limit of the texts is reached, they are evicted by the clock
// algorithm: each use of a text lets it survive a turn of the hand.
type textCache struct {
	maxTexts, maxIndexes int64        // in bytes
	texts, indexes       atomic.Int64 // likewise

	mu   sync.Mutex
	ring []*dirent // files whose text is, or once was, kept
	hand int
}

const (
	// maxUses is how many turns of the hand a frequently used text survives.
	maxUses = 3
	// textShare is the part of Config.MaxMemory that texts may take: 1/textShare. If a text is not kept, it is read
	// again, which takes about 10 µs; if an index is not kept, every query reads every file.
	textShare = 20
	// maxShare is the part of maxTexts that one text may take: 1/maxShare.
	maxShare = 16
)

func newTextCache(memory int64) *textCache {
	return &textCache{maxTexts: memory / textShare, maxIndexes: memory - memory/textShare}
}

// kept is how many bytes are kept.
func (c *textCache) kept() int64 { return c.texts.Load() + c.indexes.Load() }

// add adds n to the number of bytes of texts that are kept.
func (c *textCache) add(n int64) {
	keepBytes(n)
	c.texts.Add(n)
}

// store replaces what is known of a file.
func (c *textCache) store(e *dirent, k *fileState) {
	if k != nil && k.text != nil {
		c.add(int64(len(k.text)))
	}
	if old := e.state.Swap(k); old != nil {
		c.add(-int64(len(old.text)))
	}
	if k != nil && k.text != nil {
		c.enter(e)
	}
}

// use notes that a text was used.
func (e *dirent) use() {
	if n := e.uses.Load(); n < maxUses {
		e.uses.Store(n + 1)
	}
}

// enter notes that a file's text is kept.
func (c *textCache) enter(e *dirent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !e.cached {
		e.cached = true
		c.ring = append(c.ring, e)
	}
}

// makeRoom reports whether n bytes of text may be kept. With evict it makes room.
func (c *textCache) makeRoom(n int64, evict bool) bool {
	if c.texts.Load()+n <= c.maxTexts {
		return true
	}
	if !evict || n > c.maxTexts/maxShare {
		return false
	}
	c.evict(c.maxTexts - n)
	return c.texts.Load()+n <= c.maxTexts
}

// grow takes n bytes for an index, or gives them back if n is negative. It reports false if the indexes together
// would exceed their limit.
func (c *textCache) grow(n int64) bool {
	if n > 0 && c.indexes.Load()+n > c.maxIndexes {
		return false
	}
	keepBytes(n)
	c.indexes.Add(n)
	return true
}

// evict drops texts until no more than the given bytes are kept, if it can.
func (c *textCache) evict(to int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for steps := (maxUses + 1) * len(c.ring); steps > 0 && len(c.ring) > 0 && c.texts.Load() > to; steps-- {
		c.hand %= len(c.ring)
		e := c.ring[c.hand]
		if n := e.uses.Load(); n > 0 {
			e.uses.Store(n - 1)
			c.hand++
			continue
		}
		if k := e.state.Load(); k != nil && k.text != nil {
			without := *k
			without.text = nil
			if !e.state.CompareAndSwap(k, &without) {
				c.hand++
				continue
			}
			c.add(-int64(len(k.text)))
		}
		c.leave()
	}
}

// leave removes the file at the hand from the ring.
func (c *textCache) leave() {
	last := len(c.ring) - 1
	c.ring[c.hand].cached = false
	c.ring[c.hand], c.ring[last] = c.ring[last], nil
	c.ring = c.ring[:last]
}

// sweep removes the files without a text, so that the trees that they were in can be freed.
func (c *textCache) sweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.hand = 0; c.hand < len(c.ring); {
		if k := c.ring[c.hand].state.Load(); k == nil || k.text == nil {
			c.leave()
		} else {
			c.hand++
		}
	}
}
