package readstate

import (
	"container/list"
	"slices"
	"sync"
)

// contents keeps bytes by their hash within a budget, least recently used out first. What two scopes saw is kept once, and only
// somebody who has the hash, that is who saw the bytes, can ask for them.
type contents struct {
	max, maxOne int64

	mu     sync.Mutex
	bytes  int64
	byHash map[[32]byte]*list.Element // of content
	byUse  *list.List                 // most recently used first
}

type content struct {
	hash [32]byte
	data []byte
}

func newContents(limit, maxOne int64) *contents {
	return &contents{max: limit, maxOne: min(maxOne, limit), byHash: make(map[[32]byte]*list.Element), byUse: list.New()}
}

// put keeps a copy of the pieces in one, unless they are empty or too large.
func (c *contents) put(hash [32]byte, pieces ...[]byte) {
	size := int64(0)
	for _, piece := range pieces {
		size += int64(len(piece))
	}
	if size == 0 || size > c.maxOne || c.touch(hash) != nil {
		return
	}
	data := slices.Concat(pieces...)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byHash[hash] != nil { // kept by another call meanwhile
		return
	}
	c.byHash[hash] = c.byUse.PushFront(content{hash, data})
	for c.bytes += size; c.bytes > c.max; {
		oldest := c.byUse.Remove(c.byUse.Back()).(content)
		delete(c.byHash, oldest.hash)
		c.bytes -= int64(len(oldest.data))
	}
}

// touch returns the bytes with that hash, nil when they are not kept.
func (c *contents) touch(hash [32]byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byHash[hash]
	if e == nil {
		return nil
	}
	c.byUse.MoveToFront(e)
	return e.Value.(content).data
}
