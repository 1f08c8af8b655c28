package atomicfile

import "sync"

// Temps keeps the names of temporary files and their entries in the journal from
// one write to the next in the same directory: making an entry and removing it
// costs about as much as the rest of a small write. The zero value is ready for
// use; all writers of a process share one. Close it when the last write has ended.
//
// A name is used by one write at a time. Other programs may have seen it before:
// the file is created with O_EXCL, and a name that is in use is dropped.
type Temps struct {
	mu     sync.Mutex
	free   map[string][]reserved // by directory
	count  int
	closed bool
}

// A reserved name is one with an entry in the journal: Recover removes its file.
type reserved struct {
	name   string
	intent *entry
}

// maxFree bounds the names that are kept, and with them open files.
const maxFree = 32

// take returns a name for the directory, if there is one.
func (t *Temps) take(dir string) (reserved, bool) {
	if t == nil {
		return reserved{}, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.free[dir]
	if len(list) == 0 {
		return reserved{}, false
	}
	last := list[len(list)-1]
	if t.free[dir] = list[:len(list)-1]; len(list) == 1 {
		delete(t.free, dir)
	}
	t.count--
	return last, true
}

// keep stores a name for reuse, whose file is gone. It reports false if there is no room.
func (t *Temps) keep(dir string, r reserved) bool {
	if t == nil || r.intent == nil || dir == "" {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.count >= maxFree {
		return false
	}
	if t.free == nil {
		t.free = map[string][]reserved{}
	}
	t.free[dir] = append(t.free[dir], r)
	t.count++
	return true
}

// Close removes the entries that are kept.
func (t *Temps) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, list := range t.free {
		for _, r := range list {
			r.intent.done()
		}
	}
	t.free, t.count = nil, 0
}
