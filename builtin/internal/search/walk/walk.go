// Package walk lists directories and opens files below one root so that no
// path can lead outside of it: symbolic links are never followed, whatever is
// swapped in between, and nothing that could block or act when opened (a FIFO,
// a device) is opened to be read.
package walk

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"syscall"
)

// Kind is what a directory entry is. Everything that is neither a regular
// file nor a directory is Other: links, FIFOs, sockets, devices.
type Kind uint8

const (
	Other Kind = iota
	File
	Dir
)

// Entry is one name in a directory.
type Entry struct {
	Name string
	Kind Kind
}

// Info is what the search needs to know of a file.
type Info struct {
	Kind Kind
	Stamp
}

// Stamp tells one state of a file from another, as far as the file system
// does: after a change within the granularity of its clock it is the same.
type Stamp struct {
	Size   int64  // bytes
	Change int64  // time of the last change of content, in nanoseconds since 1970
	Status int64  // time of the last change of content or metadata, likewise
	Inode  uint64 // 0 where it is not known
	Device uint64
	Links  uint64 // names of the file
}

// Look is what the file system said of a file at some time.
type Look struct {
	Stamp
	At int64 // in nanoseconds since 1970; not after it was said
}

// ID tells directories apart. The zero ID is of none.
type ID struct{ Device, Inode uint64 }

// ErrNotRegular is returned when a path turns out not to be a regular file.
var ErrNotRegular = errors.New("not a regular file")

// IsGone reports whether the error says that a file or directory is no longer
// there, or no longer is what it was when it was listed.
func IsGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) ||
		errors.Is(err, ErrNotRegular)
}

// Parallel calls visit for every item, with at most workers calls at once, and
// for the items that visit returns, until none is left. Each call gets the
// number of its worker, from 0. When ctx ends no further items are visited.
// It returns when all calls have returned.
func Parallel[T any](ctx context.Context, workers int, first T, visit func(worker int, item T) []T) {
	q := newQueue(first, workers)
	stop := context.AfterFunc(ctx, q.cancel)
	defer stop()
	var wg sync.WaitGroup
	for w := range workers - 1 {
		wg.Go(func() { q.work(w, visit) })
	}
	q.work(workers-1, visit)
	wg.Wait()
}

// queue hands items between workers. A worker keeps most of what it finds to
// itself and shares half of it when another one is idle.
type queue[T any] struct {
	mu      sync.Mutex
	wake    sync.Cond
	shared  []T
	idle    int
	workers int
	done    bool
}

func newQueue[T any](first T, workers int) *queue[T] {
	q := &queue[T]{shared: []T{first}, workers: workers}
	q.wake.L = &q.mu
	return q
}

func (q *queue[T]) cancel() {
	q.mu.Lock()
	q.done = true
	q.mu.Unlock()
	q.wake.Broadcast()
}

func (q *queue[T]) work(w int, visit func(int, T) []T) {
	var own []T
	for {
		if len(own) == 0 {
			item, ok := q.take()
			if !ok {
				return
			}
			own = append(own, item)
		}
		item := own[len(own)-1]
		own = append(own[:len(own)-1], visit(w, item)...)
		var ok bool
		if own, ok = q.share(own); !ok {
			return
		}
	}
}

// take waits for a shared item; ok is false when there will be none.
func (q *queue[T]) take() (item T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.idle++
	for len(q.shared) == 0 && q.idle < q.workers && !q.done {
		q.wake.Wait()
	}
	if q.done || len(q.shared) == 0 {
		q.done = true
		q.wake.Broadcast()
		return item, false
	}
	q.idle--
	item = q.shared[len(q.shared)-1]
	q.shared = q.shared[:len(q.shared)-1]
	return item, true
}

// share gives half of the items away when somebody waits for them.
func (q *queue[T]) share(own []T) ([]T, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.idle > 0 && len(q.shared) == 0 && len(own) > 1 {
		half := len(own) / 2
		q.shared = append(q.shared, own[:half]...)
		own = append(own[:0], own[half:]...)
		q.wake.Broadcast()
	}
	return own, !q.done
}

// A Listing is what the listing of a directory tells beside the entries, and whom. Only on Linux is any of it filled in or called.
type Listing struct {
	// Local says that the listed directory is on a file system where a read that
	// returns less than was asked for has reached the end of the file.
	Local bool
	// ID is of the listed directory.
	ID ID
	// Opened, unless nil, is called with the descriptor of the directory before
	// its entries are read.
	Opened func(fd int)
	// Listed, unless nil, is called with the directory and its entries while it is
	// still open.
	Listed func(dir *Root, listed []Entry)
	// Recall, unless nil, is called after Opened, and may append the entries instead
	// of List, if it knows by Look that they are the same.
	Recall func(to []Entry) ([]Entry, bool)
	// Look is what the file system says of the directory, after Opened and before its
	// entries are read.
	Look Look
}
