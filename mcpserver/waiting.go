package mcpserver

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/mcpserver/audit"
	"github.com/toolhost/toolhost/mcpserver/internal/approvals"
)

// A call that a person is asked about comes twice, and has one record. The first is kept here until the answer comes.

// answerGrace is how long after its end a question's record waits for an answer that came too late, which then ends it.
const answerGrace = 10 * time.Second

// A waitingRecords holds the records of calls that a person was asked about, by the states of the questions.
type waitingRecords struct {
	write func(audit.Record) error

	mu      sync.Mutex
	records map[string]*waitingRecord
}

type waitingRecord struct {
	rec    audit.Record
	digest []byte
	timer  *time.Timer
}

// put keeps the record of a call that was answered with a question. Beyond [approvals.MaxOpen] of one principal the oldest has expired,
// as its question has.
func (w *waitingRecords) put(q *Question, rec audit.Record) {
	defer func() { w.expire(w.over(rec.Principal)) }()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.records == nil {
		w.records = map[string]*waitingRecord{}
	}
	state := q.State // the whole question is not kept
	timer := time.AfterFunc(approvals.Lifetime+answerGrace, func() { w.expire(state) })
	w.records[state] = &waitingRecord{rec.Clipped(), q.digest, timer}
}

// over returns the state of the oldest question of a principal that has too many, "" if it has not.
func (w *waitingRecords) over(principal string) (oldest string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for state, r := range w.records {
		if r.rec.Principal != principal {
			continue
		}
		if n++; oldest == "" || r.rec.Time.Before(w.records[oldest].rec.Time) {
			oldest = state
		}
	}
	if n <= approvals.MaxOpen {
		return ""
	}
	return oldest
}

// resume continues the record of the call whose question the state is of.
func (w *waitingRecords) resume(rec *audit.Record, state string, digest []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	was, ok := w.records[state]
	if !ok || !bytes.Equal(was.digest, digest) {
		return
	}
	was.timer.Stop()
	delete(w.records, state)
	rec.Time, rec.Question, rec.Phases = was.rec.Time, was.rec.Question, append(was.rec.Phases, rec.Phases...)
	if strings.HasPrefix(state, resumePrefix) { // it is not planned again
		rec.Command, rec.Reads, rec.Writes, rec.Effects, rec.Summary = was.rec.Command, was.rec.Reads, was.rec.Writes, was.rec.Effects, was.rec.Summary
	}
}

// expire writes the record of a question that no one answered.
func (w *waitingRecords) expire(state string) {
	w.mu.Lock()
	was, ok := w.records[state]
	delete(w.records, state)
	w.mu.Unlock()
	if !ok {
		return
	}
	was.timer.Stop()
	was.rec.Verdict = guard.Ask.String()
	was.rec.Did(audit.PhaseExpired, "", "")
	_ = w.write(was.rec) // it logs its errors
}

// close writes the records of all questions that wait.
func (w *waitingRecords) close() {
	w.mu.Lock()
	states := slices.Collect(maps.Keys(w.records))
	w.mu.Unlock()
	for _, state := range states {
		w.expire(state)
	}
}
