package sandbox

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"toolhost/guard/sandbox/internal/landlock"
)

// socketInterval is how long a look for sockets of host programs is good for.
// A look takes 0.05 ms, on a desktop with a thousand sockets 1 ms.
const socketInterval = 2 * time.Second

// socketLook remembers which sockets of the host are masked. Where Landlock
// knows sockets in the file system it limits commands to their own, and there
// is nothing to look for.
type socketLook struct {
	mu      sync.Mutex
	known   map[inode]bool // nil: do not look
	last    time.Time
	allowed []string
}

func (l *socketLook) start(pl *plan) {
	if landlock.Version() >= landlock.UnixSockets {
		return
	}
	l.known, l.last, l.allowed = make(map[inode]bool), time.Now(), pl.sockets
	for _, t := range pl.masked {
		l.known[t.inode] = true
	}
}

// fresh returns the sockets that have appeared since the last look.
func (l *socketLook) fresh(now time.Time) ([]target, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil || now.Sub(l.last) < socketInterval {
		return nil, nil
	}
	list, err := hostSockets(l.allowed)
	if err != nil {
		return nil, err
	}
	l.last = now
	return slices.DeleteFunc(list, func(t target) bool { return l.known[t.inode] }), nil
}

// done notes that sockets are masked now.
func (l *socketLook) done(list []target) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range list {
		l.known[t.inode] = true
	}
}

// maskNewSockets covers sockets that host programs have bound lately. One that
// goes or changes meanwhile is a reason to look again, not to give up at once.
func (n *namespaces) maskNewSockets() error {
	now := time.Now()
	for try := 1; ; try++ {
		list, err := n.looked.fresh(now)
		if err != nil || len(list) == 0 {
			return err
		}
		_, err = n.request(msgDeny, func(e *encoder) {
			encodeTargets(e, list)
			e.strs(nil)
		})
		if err == nil {
			n.looked.done(list)
			return nil
		}
		if try == socketTries {
			return fmt.Errorf("sandbox: hiding sockets of the host: %w", err)
		}
		now = now.Add(socketInterval)
	}
}

// socketTries is how often a look is repeated.
const socketTries = 3

// hostSockets returns the Unix sockets that host programs have bound to a name,
// except those in, or below a directory in, allowed.
func hostSockets(allowed []string) ([]target, error) {
	table, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil, fmt.Errorf("sandbox: listing the sockets of daemons: %w", err)
	}
	var list []target
	for _, path := range socketPaths(string(table)) {
		t, err := locate(path)
		if err == nil && !t.dir && !withinAny(t.path, allowed) {
			list = append(list, t)
		}
	}
	return list, nil
}

// socketPaths extracts the absolute names from a table in the form of
// /proc/net/unix: seven columns, then the name, which may contain spaces.
func socketPaths(table string) []string {
	var paths []string
	for line := range strings.Lines(table) {
		rest := strings.TrimRight(line, "\n")
		for range 7 {
			_, after, found := strings.Cut(strings.TrimLeft(rest, " "), " ")
			if !found {
				after = ""
			}
			rest = after
		}
		if strings.HasPrefix(rest, "/") {
			paths = append(paths, rest)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}
