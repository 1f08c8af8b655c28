package gateway

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// makeRoom stops the least recently used servers until another one may start.
func (g *Gateway) makeRoom(starting *upstream) error {
	for {
		g.mu.Lock()
		closed := g.closed
		var host, caller []*upstream
		for _, u := range g.live {
			if u != starting && u.srv.Type == typeStdio && u.isLive() {
				host = append(host, u)
				if u.principal == starting.principal {
					caller = append(caller, u)
				}
			}
		}
		g.mu.Unlock()
		switch {
		case closed:
			return errors.New("the host is closing")
		case len(caller) >= processesOfCaller:
			host = caller
		case len(host) < processesOfHost:
			return nil
		}
		slices.SortFunc(host, func(a, b *upstream) int { return a.lastUse().Compare(b.lastUse()) })
		if !slices.ContainsFunc(host, func(u *upstream) bool { return u.stopIfIdle(0) }) {
			return fmt.Errorf("%d servers are running and all are in use: repeat the call later", len(host))
		}
	}
}

func (u *upstream) isLive() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.live != nil && !isStopped(u.live.w) || u.starting != nil
}

func (u *upstream) lastUse() time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.used
}

// stopIfIdle stops the connection if no call has used it for the given time, and reports whether it did.
func (u *upstream) stopIfIdle(since time.Duration) bool {
	u.mu.Lock()
	if u.live == nil || u.users > 0 || time.Since(u.used) < since {
		u.mu.Unlock()
		return false
	}
	s, closed := u.live, make(chan struct{})
	u.live, u.closing = nil, closed
	u.mu.Unlock()
	u.g.work.Go(func() { // a server that does not end must not delay the start of another one
		defer close(closed)
		s.w.close()
	})
	return true
}

// stop ends the connection, even if it is in use, and a start in progress. It returns when the server has ended.
func (u *upstream) stop() {
	for {
		u.mu.Lock()
		now, s := u.starting, u.live
		u.live = nil
		u.mu.Unlock()
		if now != nil {
			now.cancel()
			<-now.done
			continue
		}
		if s != nil {
			s.w.close()
		}
		return
	}
}
