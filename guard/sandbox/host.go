package sandbox

import (
	"context"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/toolhost/toolhost/guard/internal/proxy"
)

// A Connection is an attempt of a command to reach a host that no list of its [Network] names.
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

// A HostJudge decides whether a connection is made, and says why not; "" if nothing but the lists refuses it. It may
// take its time: to the program the network is slow. ctx ends with the command. It may be called concurrently.
type HostJudge func(ctx context.Context, c Connection) (allowed bool, why string)

// A HostGate holds the judge of one command, which [Spec].Hosts names. A shell may be started before its call is
// known: without a judge every connection is refused.
type HostGate struct {
	ctx context.Context
	end context.CancelFunc

	mu    sync.Mutex
	judge HostJudge
}

// NewHostGate returns a gate without a judge.
func NewHostGate() *HostGate {
	g := &HostGate{}
	g.ctx, g.end = context.WithCancel(context.Background())
	return g
}

// Judge sets the judge of the connections that the command makes from now on.
func (g *HostGate) Judge(j HostJudge) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.judge = j
}

// Close ends what waits for the judge. All connections are refused from now on.
func (g *HostGate) Close() {
	g.Judge(nil)
	g.end()
}

// open reports whether the gate has a judge.
func (g *HostGate) open() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.judge != nil
}

// answer asks the judge.
func (g *HostGate) answer(ctx context.Context, c Connection) (allowed bool, why string) {
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

// hostGates are the gates of the commands of a sandbox.
type hostGates struct {
	mu  sync.Mutex
	all map[*HostGate]struct{}
}

// add keeps a gate until it is closed.
func (s *hostGates) add(g *HostGate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[*HostGate]struct{}{}
	}
	s.all[g] = struct{}{}
	context.AfterFunc(g.ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.all, g)
	})
}

// only returns the gate with a judge if there is one such gate: a connection of a process that is not found is its
// command's.
func (s *hostGates) only() (only *HostGate) {
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

// caller is [proxy.Rules].Caller.
func (s *Sandbox) caller(from, to netip.AddrPort) (c proxy.Caller) {
	var gate *HostGate
	var chain []string
	var program Program
	found := false
	if s.connecting != nil {
		gate, chain, program, found = s.connecting(from, to)
	}
	if !found {
		gate = s.hosts.only()
	}
	names := make([]string, len(chain))
	for i, name := range chain {
		names[i] = quoted(name)
	}
	c.Program = strings.Join(names, " → ")
	if gate != nil {
		c.Ask = func(ctx context.Context, host, port string) (bool, string) {
			return gate.answer(ctx, Connection{Host: host, Port: port, Chain: chain, Program: program})
		}
		c.Used = func(secret, host, port, refused string) {
			gate.answer(context.Background(), Connection{Host: host, Port: port, Chain: chain, Program: program, Secret: secret, Refused: refused})
		}
	}
	return c
}

// quoted returns the name of a program for a line of text. The program chooses it.
func quoted(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._+-", r)
	}) {
		return strconv.QuoteToASCII(name)
	}
	return name
}
