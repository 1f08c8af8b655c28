package walk

import (
	"slices"
	"sync"
)

// InOrder calls visit for an item, and for those that visit returns, as Parallel does, but
// always for the first that is left: compare says which of two comes first. What visit
// returns is in order, and nothing else lies between. Whenever so many items have been
// visited, and all that come before them, and when none is left, all calls have returned and
// turn is called, which returns how many more are to be visited; 0 ends it. Workers are
// goroutines that end with it.
func InOrder[T any](workers, most int, first T, compare func(a, b T) int, visit func(worker int, item T) []T, turn func(over bool) (more int)) {
	l := &line[T]{next: []T{first}, compare: compare}
	l.wake.L, l.rest.L = &l.mu, &l.mu
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() { l.work(w, visit) })
	}
	for over := false; !over && most > 0; {
		over = l.some(most)
		most = turn(over)
	}
	l.mu.Lock()
	l.over = true
	l.mu.Unlock()
	l.wake.Broadcast()
	wg.Wait()
}

// line is what stands in line for workers.
type line[T any] struct {
	compare func(a, b T) int

	mu          sync.Mutex
	wake        sync.Cond // there is something to do, or no more
	rest        sync.Cond // nothing more may be visited for now, and nothing is
	next        []T       // the first comes last
	far         T         // the last in order that has been visited
	left        int       // how many behind that may be visited
	busy        int
	begun, over bool
}

// some lets so many items be visited, and reports whether none is left.
func (l *line[T]) some(most int) (over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = most
	l.wake.Broadcast()
	for l.busy > 0 || l.open() {
		l.rest.Wait()
	}
	return len(l.next) == 0
}

// open reports whether the first that is left may be visited. What lies before another that
// has been visited may be: a worker was slow.
func (l *line[T]) open() bool {
	last := len(l.next) - 1
	return last >= 0 && (l.left > 0 || l.begun && l.compare(l.next[last], l.far) < 0)
}

func (l *line[T]) work(w int, visit func(int, T) []T) {
	for {
		item, ok := l.take()
		if !ok {
			return
		}
		l.put(visit(w, item))
	}
}

// take waits for an item; ok is false when there will be none.
func (l *line[T]) take() (item T, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.over && !l.open() {
		l.wake.Wait()
	}
	if l.over {
		return item, false
	}
	last := len(l.next) - 1
	item = l.next[last]
	l.next = l.next[:last]
	l.busy++
	if l.left > 0 {
		l.left--
	}
	if !l.begun || l.compare(item, l.far) > 0 {
		l.far, l.begun = item, true
	}
	return item, true
}

// put adds what a visit has returned, which ends with that.
func (l *line[T]) put(items []T) {
	slices.Reverse(items)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy--
	if len(items) > 0 {
		at, _ := slices.BinarySearchFunc(l.next, items[0], func(a, b T) int { return l.compare(b, a) })
		l.next = slices.Insert(l.next, at, items...)
		if len(items) > 1 { // one is for who has put it there
			l.wake.Broadcast()
		}
	}
	if l.busy == 0 && !l.open() {
		l.rest.Signal()
	}
}
