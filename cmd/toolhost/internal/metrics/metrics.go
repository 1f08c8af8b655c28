// Package metrics counts the calls of a host, and serves these counts and the state of the host to Prometheus.
//
// It writes the text format itself. The library of Prometheus links protobuf, which would cost every start 1.5 MB,
// even if no one scrapes the host. The tests check the text with that library's parser and linter, and compare the
// names of process and Go metrics with those of its collectors.
//
// Labels have few values: tools that are served, verdicts, outcomes, roots. A principal is never a label.
package metrics

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver/audit"
)

// buckets are the upper bounds of the ranges of durations, in seconds, as in the OpenTelemetry conventions for MCP
// servers.
var buckets = []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}

// otherTool stands for tools that are not served, whose names callers make up.
const otherTool = "_other"

// A Metrics is an observer that counts calls. Use [New].
type Metrics struct {
	mu        sync.Mutex
	calls     map[callLabels]uint64
	durations map[string]*durations // by tool
	waiting   map[uint64]bool       // by id of the call; true until its turn
	nWaiting  int
}

// callLabels are the labels of one count of calls.
type callLabels struct{ tool, verdict, outcome string }

// durations is a histogram of the calls of one tool.
type durations struct {
	counts []uint64 // one for each bucket, and one for what is longer
	sum    float64  // seconds
}

// New returns a Metrics without calls.
func New() *Metrics {
	return &Metrics{calls: map[callLabels]uint64{}, durations: map[string]*durations{}, waiting: map[uint64]bool{}}
}

var _ audit.StageObserver = (*Metrics)(nil)

// CallBegan implements [audit.Observer].
func (m *Metrics) CallBegan(ctx context.Context, c audit.Call) context.Context {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting[c.ID] = true
	m.nWaiting++
	return ctx
}

// CallReached implements [audit.StageObserver].
func (m *Metrics) CallReached(_ context.Context, c audit.Call, s audit.Stage) {
	if s != audit.AtTurn {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting[c.ID] {
		m.waiting[c.ID] = false
		m.nWaiting--
	}
}

// CallPlanned implements [audit.Observer].
func (*Metrics) CallPlanned(context.Context, audit.Call, audit.Record) {}

// CallEnded implements [audit.Observer].
func (m *Metrics) CallEnded(_ context.Context, c audit.Call, r audit.Record, result builtin.Result) {
	tool := otherTool
	if c.Served {
		tool = c.Tool
	}
	verdict := r.Verdict
	if verdict == "" {
		verdict = "none"
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting[c.ID] {
		m.nWaiting--
	}
	delete(m.waiting, c.ID)
	m.calls[callLabels{tool, verdict, audit.Outcome(r, result)}]++
	if m.durations[tool] == nil {
		m.durations[tool] = &durations{counts: make([]uint64, len(buckets)+1)}
	}
	m.durations[tool].observe(time.Since(c.Arrived).Seconds())
}

func (d *durations) observe(seconds float64) {
	i, _ := slices.BinarySearch(buckets, seconds) // the first bound that is not less
	d.counts[i]++
	d.sum += seconds
}
