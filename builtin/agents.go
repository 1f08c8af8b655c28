package builtin

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/agent"
)

// Limits of agents.
const (
	// maxAgentsOfCaller and maxAgents are how many run at once, of one caller and of the host.
	maxAgentsOfCaller, maxAgents = 4, 16
	// maxAgentsKept is how many that have ended are remembered of a caller.
	maxAgentsKept = 32
)

// A knownAgent is one that runs, or ran and can be continued.
type knownAgent struct {
	id, owner string
	runner    string
	session   string // of the runner; "" if it has told none
	isolation string
	def       agent.Definition
	running   bool
	ended     time.Time
	stop      func(cause error)
	done      <-chan struct{}
}

// agentTable holds the agents of a host. The zero table is empty.
type agentTable struct {
	mu     sync.Mutex
	all    map[string]*knownAgent
	closed bool
}

// reserve counts an agent that is about to start. It makes an id for one without.
func (t *agentTable) reserve(a *knownAgent) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var mine []string
	running := 0
	for _, other := range t.all {
		if other.running {
			running++
		}
		if other.running && other.owner == a.owner {
			mine = append(mine, other.id)
		}
	}
	slices.Sort(mine)
	const wait = "wait for one with TaskOutput, or end it with TaskStop"
	switch {
	case t.closed:
		return errClosing
	case len(mine) >= maxAgentsOfCaller:
		return fmt.Errorf("%d run already: %s: %s", len(mine), strings.Join(mine, ", "), wait)
	case running >= maxAgents:
		return fmt.Errorf("%d agents run already on this host, %d of them yours: try again when some have ended", running, len(mine))
	case a.id != "" && t.all[a.id] != nil && t.all[a.id].running:
		return fmt.Errorf("the agent %s runs already: %s", a.id, wait)
	}
	for a.id == "" || t.all[a.id] != nil && t.all[a.id].owner != a.owner {
		var random [4]byte
		_, _ = rand.Read(random[:]) // it never fails
		a.id = hex.EncodeToString(random[:])
	}
	if t.all == nil {
		t.all = map[string]*knownAgent{}
	}
	a.running = true
	t.all[a.id] = a
	return nil
}

// end notes that an agent has ended, and forgets old ones.
func (t *agentTable) end(a *knownAgent, session string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a.running, a.session, a.ended = false, cmp.Or(session, a.session), time.Now()
	var old []*knownAgent
	for _, other := range t.all {
		if other.owner == a.owner && !other.running {
			old = append(old, other)
		}
	}
	slices.SortFunc(old, func(a, b *knownAgent) int { return a.ended.Compare(b.ended) })
	for ; len(old) > maxAgentsKept; old = old[1:] {
		delete(t.all, old[0].id)
	}
}

// started notes how a running agent is ended.
func (t *agentTable) started(a *knownAgent, stop func(error), done <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a.stop, a.done = stop, done
	if t.closed {
		go stop(errClosing)
	}
}

// find returns an agent of a caller.
func (t *agentTable) find(owner, id string) (knownAgent, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.all[id]
	if a == nil || a.owner != owner {
		return knownAgent{}, false
	}
	return *a, true
}

// writing returns the agents of a caller that run and whose sandbox lets them change files.
func (t *agentTable) writing(owner string) (ids []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.all {
		if a.running && a.owner == owner && !a.def.ReadsOnly() {
			ids = append(ids, a.id)
		}
	}
	slices.Sort(ids)
	return ids
}

// close ends all agents, and waits for that.
func (t *agentTable) close() {
	t.mu.Lock()
	t.closed = true
	var running []knownAgent
	for _, a := range t.all {
		if a.running && a.stop != nil {
			running = append(running, *a)
		}
	}
	t.mu.Unlock()
	for _, a := range running {
		a.stop(errClosing)
	}
	for _, a := range running {
		<-a.done
	}
}
