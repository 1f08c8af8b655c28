package atomicfile

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"
)

// Locks serialises writes to files, by directory: among goroutines through a
// table, among processes by flock on the directory itself. The zero value is
// ready for use; all writers of a process share one.
//
// The lock is on the directory rather than the file because a file that is
// replaced by a rename has no lasting inode to lock, and because one file can
// have several spellings (of case, of Unicode form). It is not on a lock file
// because that would remain in the directory, and a lock file elsewhere would
// only exclude processes that use the same place. Writes take a millisecond, so
// files of one directory can wait for each other.
//
// Locks do not nest: a goroutine that waits for a directory it has locked
// itself waits until its context ends.
//
// On Windows, and on file systems that cannot lock a directory (NFS without
// local locks), only the goroutines of this process exclude each other;
// [Options.Expect] still finds what another process changed before.
type Locks struct {
	mu   sync.Mutex
	dirs map[string]*dirLock
}

// dirLock is the lock of one directory within the process.
type dirLock struct {
	token chan struct{} // holds one value while locked; waiters are served in order
	users int           // holder and waiters; the last one removes the lock
}

// The pauses between attempts to get a lock that another process holds. A blocking flock could not be cancelled.
const (
	firstPause = time.Millisecond
	maxPause   = 25 * time.Millisecond
)

// Lock waits until it has the lock of dir, ctx ends, or limit is over; 0 is no
// limit. unlock must be called once.
func (l *Locks) Lock(ctx context.Context, dir *os.Root, limit time.Duration) (unlock func(), err error) {
	handle, err := openHandle(dir)
	if err != nil {
		return nil, fmt.Errorf("lock the directory %s: %w", dir.Name(), err)
	}
	key, err := dirKey(handle)
	if err != nil {
		handle.Close()
		return nil, fmt.Errorf("lock the directory %s: %w", dir.Name(), err)
	}
	p := &waitBudget{Context: ctx, limit: limit}
	defer p.end()
	release, err := l.acquire(p, key)
	if err == nil {
		if err = flockWait(p, handle); err != nil {
			release()
		}
	}
	if err != nil {
		handle.Close()
		return nil, fmt.Errorf("wait for another write in %s: %w", dir.Name(), err)
	}
	return func() {
		handle.Close() // ends the lock of the process
		release()
	}, nil
}

// waitBudget is a context that ends a limited time after the first wait. Few calls wait, and setting a timer for each
// would wake a thread.
type waitBudget struct {
	context.Context
	limit  time.Duration
	cancel context.CancelFunc // nil: nothing waits yet
}

// over returns a channel that is closed when the wait must end.
func (p *waitBudget) over() <-chan struct{} {
	if p.cancel == nil && p.limit > 0 {
		p.Context, p.cancel = context.WithTimeout(p.Context, p.limit)
	}
	return p.Done()
}

func (p *waitBudget) end() {
	if p.cancel != nil {
		p.cancel()
	}
}

// acquire gets the lock within the process.
func (l *Locks) acquire(p *waitBudget, key string) (release func(), err error) {
	l.mu.Lock()
	if l.dirs == nil {
		l.dirs = make(map[string]*dirLock)
	}
	d := l.dirs[key]
	if d == nil {
		d = &dirLock{token: make(chan struct{}, 1)}
		l.dirs[key] = d
	}
	d.users++
	l.mu.Unlock()

	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if d.users--; d.users == 0 {
			delete(l.dirs, key)
		}
	}
	if err := p.Err(); err != nil {
		leave()
		return nil, err
	}
	release = func() { <-d.token; leave() }
	select {
	case d.token <- struct{}{}:
		return release, nil
	default:
	}
	select {
	case d.token <- struct{}{}:
		return release, nil
	case <-p.over():
		leave()
		return nil, p.Err()
	}
}

// flockWait gets the lock among processes. It ends when handle is closed.
func flockWait(p *waitBudget, handle *os.File) error {
	pause := firstPause
	for {
		switch busy, err := tryLockDir(handle); {
		case err != nil || !busy:
			return err
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, maxPause)
		case <-p.over():
			return p.Err()
		}
	}
}
