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

// A call that a person is asked about arrives twice but has one record. The record is kept here until the answer comes.

// answerGrace is how long after a question's end its record still waits for a late answer, which then completes the
// record.
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

// put keeps the record of a call that was answered with a question. If one principal has more than [approvals.MaxOpen]
// records, the oldest has expired together with its question.
func (w *waitingRecords) put(q *Question, rec audit.Record) {
	defer func() { w.expire(w.over(rec.Principal)) }()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.records == nil {
		w.records = map[string]*waitingRecord{}
	}
	state := q.State // the record does not need the whole question
	timer := time.AfterFunc(approvals.Lifetime+answerGrace, func() { w.expire(state) })
	w.records[state] = &waitingRecord{rec.Clipped(), q.digest, timer}
}

// over returns the state of the oldest question of a principal that has too many, and otherwise "".
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

// resume continues the record of the call whose question has this state.
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
	if strings.HasPrefix(state, resumePrefix) { // the call is not planned again
		rec.Command, rec.Reads, rec.Writes, rec.Effects, rec.Summary = was.rec.Command, was.rec.Reads, was.rec.Writes, was.rec.Effects, was.rec.Summary
	}
}

// expire writes the record of a question that was not answered.
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

// close writes the records of all open questions.
func (w *waitingRecords) close() {
	w.mu.Lock()
	states := slices.Collect(maps.Keys(w.records))
	w.mu.Unlock()
	for _, state := range states {
		w.expire(state)
	}
}
