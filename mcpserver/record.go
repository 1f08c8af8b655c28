package mcpserver

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/mcpserver/audit"
	"github.com/toolhost/toolhost/mcpserver/internal/approvals"
)

// A recorder writes the audit log and calls the observers.
type recorder struct {
	audit     *audit.Log // nil if calls are not recorded
	required  bool       // the log is configured explicitly: a call that cannot be recorded is refused
	observers *audit.Observers
	log       *slog.Logger
}

// openAudit opens the configured log, or else the one in the state directory if that can be written.
func (r *recorder) openAudit(cfg Config, state string, rules *guard.Policy) error {
	path := cfg.AuditLog
	if path == "" && state == "" {
		return nil
	}
	if path == "" {
		path = filepath.Join(state, "audit.jsonl")
	}
	log, err := audit.Open(audit.Config{
		Path: path, MaxSize: cfg.AuditMaxSize, Keep: cfg.AuditKeep, Optional: !r.required, Exposed: r.required &&
			rules.Exposed(path),
		Warn: func(err error) { r.log.Warn("the audit log is not rotated", "error", err) },
	})
	if err != nil && !r.required {
		r.log.Warn("calls are not recorded", "error", err)
		return nil
	}
	r.audit = log
	return err
}

// ready refuses a call that could not be recorded in a required log.
func (r *recorder) ready() error {
	err := r.audit.Ready()
	if err == nil || !r.required {
		return nil
	}
	return fmt.Errorf("refused: every call must be recorded, and the audit log cannot be written. %w", err)
}

// write records an event, or logs that it could not be recorded.
func (r *recorder) write(rec audit.Record) error {
	err := r.audit.Write(rec)
	if err != nil {
		r.log.Error("cannot record a call", "tool", rec.Tool, "event", rec.Event, "error", err)
	}
	return err
}

// end completes and writes the record of a call that has ended, and notifies the observers. If a call ran but could not
// be recorded, its reply says so. The record of a call that a person is asked about is written with the answer.
func (r *recorder) end(ctx context.Context, info audit.Call, rec *audit.Record, waiting *waitingRecords, reply *Reply) {
	result := &reply.Result
	rec.Millis = float64(time.Since(rec.Time).Microseconds()) / 1000
	rec.Bytes = len(result.Text)
	if result.Summary != "" {
		rec.Summary = result.Summary
	}
	rec.LastLine = result.LastLine
	rec.Era, rec.Pin, rec.Replayed = result.Served.Era, result.Served.Pin, result.Served.Replayed
	if rec.Error = result.Text; !result.IsError {
		rec.Error = ""
	} else if rec.Verdict == "" || rec.Verdict == guard.Allow.String() { // a tool's text may be file content
		rec.Error, _, _ = strings.Cut(result.Text, "\n")
	}
	if reply.Question != nil {
		waiting.put(reply.Question, *rec)
	} else if err := r.write(*rec); err != nil && r.required {
		result.Text += "\n\n[This call could not be recorded; further calls are refused until the audit log can be " +
			"written: " + err.Error() + "]"
	}
	r.observers.Ended(ctx, info, *rec, *result)
}

// A call with a question arrives twice but has one record, which waits here for the answer.

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
	timer := time.AfterFunc(approvals.Kept+answerGrace, func() { w.expire(state) })
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
		rec.Command, rec.Reads, rec.Writes, rec.Effects, rec.Summary = was.rec.Command, was.rec.Reads, was.rec.Writes,
			was.rec.Effects, was.rec.Summary
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
