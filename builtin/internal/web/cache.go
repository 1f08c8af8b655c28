package web

import (
	"container/list"
	"sync"
	"time"
)

// Limits of the cache.
const (
	cacheTime    = 15 * time.Minute
	cachePerUser = 64 << 20  // bytes
	cacheInAll   = 256 << 20 // bytes, of all callers
)

// A cache holds answers for the callers that fetched them. The zero cache is empty.
type cache struct {
	mu     sync.Mutex
	recent list.List // of *cached, the last used first
	found  map[cacheKey]*list.Element
}

type cacheKey struct{ caller, url string }

type cached struct {
	key  cacheKey
	resp *Response
	till time.Time
}

// size returns how many bytes an entry counts for: the body, and a document that was made of it.
func (c *cached) size() int { return 2*len(c.resp.Body) + 1000 }

// get returns the answer that a caller got for a URL, nil if it has none.
func (c *cache) get(caller, url string) *Response {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.found[cacheKey{caller, url}]
	if at == nil {
		return nil
	}
	entry := at.Value.(*cached)
	if time.Now().After(entry.till) {
		c.remove(at)
		return nil
	}
	c.recent.MoveToFront(at)
	return entry.resp
}

func (c *cache) remove(at *list.Element) {
	delete(c.found, c.recent.Remove(at).(*cached).key)
}

// put keeps an answer, and removes the least recently used ones if there are too many.
func (c *cache) put(caller, url string, resp *Response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := *resp
	kept.Cached = true
	entry := &cached{cacheKey{caller, url}, &kept, time.Now().Add(cacheTime)}
	if c.found == nil {
		c.found = map[cacheKey]*list.Element{}
	}
	if old := c.found[entry.key]; old != nil {
		c.remove(old)
	}
	c.found[entry.key] = c.recent.PushFront(entry)
	mine, all := 0, 0
	for at := c.recent.Front(); at != nil; {
		next, e := at.Next(), at.Value.(*cached)
		all += e.size()
		if e.key.caller == caller {
			mine += e.size()
		}
		if all > cacheInAll || e.key.caller == caller && mine > cachePerUser || time.Now().After(e.till) {
			c.remove(at)
		}
		at = next
	}
}
