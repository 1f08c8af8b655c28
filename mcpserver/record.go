package mcpserver

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/mcpserver/audit"
)

// A recorder writes the audit log and tells the observers.
type recorder struct {
	audit     *audit.Log // nil if calls are not recorded
	required  bool       // the user asked for the log: a call that cannot be recorded is refused
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
		Path: path, MaxSize: cfg.AuditMaxSize, Keep: cfg.AuditKeep, Optional: !r.required, Exposed: r.required && rules.Exposed(path),
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
	return fmt.Errorf("refused: every call must be recorded, and the record cannot be written. %w", err)
}

// write records an event, or logs that it could not be recorded.
func (r *recorder) write(rec audit.Record) error {
	err := r.audit.Write(rec)
	if err != nil {
		r.log.Error("a call could not be recorded", "tool", rec.Tool, "event", rec.Event, "error", err)
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
		result.Text += "\n\n[The record of this call could not be written; further calls are refused until it can: " + err.Error() + "]"
	}
	r.observers.Ended(ctx, info, *rec, *result)
}
