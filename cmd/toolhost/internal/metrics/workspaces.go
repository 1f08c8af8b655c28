package metrics

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/toolhost/toolhost/mcpserver"
)

// maxWorkspaces is how many workspaces are counted apart. The others count as [otherWorkspace].
const (
	maxWorkspaces  = 10_000
	otherWorkspace = "_other"
)

// Workspaces count the requests to workspaces. Use [NewWorkspaces].
type Workspaces struct {
	open func() int // how many have a link

	mu           sync.Mutex
	counts       map[string]*workspaceCount // by name
	unauthorized uint64
}

// A workspaceCount counts the requests to one workspace.
type workspaceCount struct {
	byStatus map[int]uint64
	seconds  float64
}

// NewWorkspaces returns an empty count.
func NewWorkspaces(open func() int) *Workspaces {
	return &Workspaces{open: open, counts: map[string]*workspaceCount{}}
}

// Done counts a request that was answered.
func (w *Workspaces) Done(name string, status int, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.counts[name]
	if c == nil {
		if len(w.counts) >= maxWorkspaces {
			name = otherWorkspace
		}
		if c = w.counts[name]; c == nil {
			c = &workspaceCount{byStatus: map[int]uint64{}}
			w.counts[name] = c
		}
	}
	c.byStatus[status]++
	c.seconds += took.Seconds()
}

// Unauthorized counts a request without a valid credential.
func (w *Workspaces) Unauthorized() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unauthorized++
}

// Listen is [Metrics.Listen].
func (w *Workspaces) Listen(cfg Config) (*Site, error) {
	return newSite(cfg, func(mcpserver.Stats) []byte {
		var p page
		w.write(&p)
		writeProgram(&p, cfg.Version)
		return p.Bytes()
	})
}

func (w *Workspaces) write(p *page) {
	p.one(openWorkspaces, float64(w.open()))
	w.mu.Lock()
	defer w.mu.Unlock()
	p.begin(workspaceCalls)
	for _, name := range sorted(w.counts) {
		c := w.counts[name]
		for _, status := range slices.Sorted(maps.Keys(c.byStatus)) {
			p.sample(workspaceCalls.name, labels{"workspace", name, "status", strconv.Itoa(status)},
				float64(c.byStatus[status]))
		}
	}
	p.begin(workspaceTime)
	for _, name := range sorted(w.counts) {
		p.sample(workspaceTime.name, labels{"workspace", name}, w.counts[name].seconds)
	}
	p.one(authFailures, float64(w.unauthorized))
}
