// Package walk lists directories and opens files below one root so that no
// path can lead outside of it: symbolic links are never followed, whatever is
// swapped in between, and nothing that could block or act when opened (a FIFO,
// a device) is opened to be read.
package walk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
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

// Info describes a file.
type Info struct {
	Kind Kind
	Stamp
	Mode fs.FileMode
}

// Stamp identifies a state of a file, as far as the file system does: a change
// within the granularity of its clock leaves it as it is.
type Stamp struct {
	Size   int64  // bytes
	Change int64  // time of the last change of content, in nanoseconds since 1970
	Status int64  // time of the last change of content or metadata, likewise
	Inode  uint64 // 0 where it is not known
	Device uint64
	Links  uint64 // names of the file
}

// Name tells the state of a file from others as long as its file system stands, or is "" where that cannot be told.
func (s Stamp) Name() string {
	if s.Inode == 0 {
		return ""
	}
	return fmt.Sprintf("%d-%d-%d", s.Inode, s.Size, s.Status)
}

// FileID identifies the file at a path if it has several names. ok is false for all else, and where a directory of the
// path is a link: the path is no name of the file then.
func FileID(path string) (id ID, info Info, ok bool) {
	info, err := Lstat(path)
	if err != nil || info.Kind != File || info.Links < 2 || info.Inode == 0 {
		return id, info, false
	}
	dir, err := OpenRoot(filepath.Dir(path))
	if err != nil {
		return id, info, false
	}
	defer dir.Close()
	info, err = dir.Stat(filepath.Base(path))
	return ID{info.Device, info.Inode}, info, err == nil && info.Kind == File && info.Links > 1
}

// ID identifies a directory. The zero ID identifies none.
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
	q := &queue[T]{items: []T{first}}
	q.wake.L = &q.mu
	stop := context.AfterFunc(ctx, q.cancel)
	defer stop()
	var wg sync.WaitGroup
	for w := range workers - 1 {
		wg.Go(func() { q.work(w, visit) })
	}
	q.work(workers-1, visit)
	wg.Wait()
}

// A queue holds the items to visit.
type queue[T any] struct {
	mu    sync.Mutex
	wake  sync.Cond // items, busy or done has changed
	items []T
	busy  int // visits under way
	done  bool
}

func (q *queue[T]) cancel() {
	q.mu.Lock()
	q.done = true
	q.mu.Unlock()
	q.wake.Broadcast()
}

func (q *queue[T]) work(w int, visit func(int, T) []T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		for len(q.items) == 0 && q.busy > 0 && !q.done {
			q.wake.Wait()
		}
		if q.done || len(q.items) == 0 {
			return
		}
		item := q.items[len(q.items)-1]
		q.items = q.items[:len(q.items)-1]
		q.busy++
		q.mu.Unlock()
		found := visit(w, item)
		q.mu.Lock()
		q.items = append(q.items, found...)
		if q.busy--; len(found) > 1 || q.busy == 0 {
			q.wake.Broadcast()
		}
	}
}

// A Listing holds what List reports in addition to the entries, and its callbacks. They are used on Linux only.
type Listing struct {
	// Local says that the listed directory is on a file system where a read that
	// returns less than was asked for has reached the end of the file.
	Local bool
	// ID is of the listed directory.
	ID ID
	// Opened, unless nil, is called with the descriptor of the directory before
	// its entries are read.
	Opened func(fd int)
}
