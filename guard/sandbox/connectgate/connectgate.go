package connectgate

import (
	"context"
	"sync"
)

// A Connection is an attempt of a command to reach a host that no list of the policy names.
type Connection struct {
	Host, Port string
	// Chain is the base names of the programs from the command's own, which is not included, down to the one that
	// connects. If that is the command's own, it is the only one. Nil: it is not known.
	Chain []string
	// Program is what connects.
	Program Program
	// Secret, if it is not "", says that a secret of this name goes into a request to the host, or why it does not. The
	// judge records that, and its answer is not used.
	Secret, Refused string
}

// A Program is what a process ran when it connected.
type Program struct {
	// Path is its file on this machine. It is "" if that is not known, or if commands see another file under that name.
	Path string
	// Args are its arguments. The process can change them.
	Args []string
}

// A Judge decides whether a connection may be made. why is the reason for a refusal, or "" if only the lists refuse.
// The judge may take its time: to the program the network is slow. ctx ends with the command. A judge may be called
// concurrently.
type Judge func(ctx context.Context, c Connection) (allowed bool, why string)

// A Gate holds the judge of one command; Hosts of a sandbox.Spec names it. A shell may be started before its call is
// known: without a judge every connection is refused.
type Gate struct {
	ctx context.Context
	end context.CancelFunc

	mu    sync.Mutex
	judge Judge
}

// New returns a gate without a judge.
func New() *Gate {
	g := &Gate{}
	g.ctx, g.end = context.WithCancel(context.Background())
	return g
}

// Judge sets the judge of the connections that the command makes from now on.
func (g *Gate) Judge(j Judge) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.judge = j
}

// Close ends all waiting for the judge. From now on every connection is refused.
func (g *Gate) Close() {
	g.Judge(nil)
	g.end()
}

// open reports whether the gate has a judge.
func (g *Gate) open() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.judge != nil
}

// Answer asks the judge.
func (g *Gate) Answer(ctx context.Context, c Connection) (allowed bool, why string) {
	g.mu.Lock()
	judge := g.judge
	g.mu.Unlock()
	if judge == nil {
		return false, ""
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(g.ctx, cancel)()
	return judge(ctx, c)
}

// Gates are the gates of the commands of a sandbox.
type Gates struct {
	mu  sync.Mutex
	all map[*Gate]struct{}
}

// Add keeps a gate until the gate is closed.
func (s *Gates) Add(g *Gate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[*Gate]struct{}{}
	}
	s.all[g] = struct{}{}
	context.AfterFunc(g.ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.all, g)
	})
}

// Only returns the gate with a judge if there is exactly one. A connection whose process is not found then belongs to
// its command.
func (s *Gates) Only() (only *Gate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for g := range s.all {
		switch {
		case !g.open():
		case only != nil:
			return nil
		default:
			only = g
		}
	}
	return only
}
