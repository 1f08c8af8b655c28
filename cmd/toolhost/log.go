package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/mcpserver/audit"
)

// followInterval is how often a followed log is polled.
const followInterval = 200 * time.Millisecond

// verdicts are the possible verdicts of a record.
var verdicts = []string{"allow", "ask", "deny"}

// auditFile is the audit log in the state directory.
const auditFile = "audit.jsonl"

// A logQuery says which records of the audit log to print, and how.
type logQuery struct {
	tool, verdict, since string
	limit                int
	follow, asJSON       bool

	from time.Time
}

func logCommand() *cobra.Command {
	var flags hostFlags
	var q logQuery
	cmd := &cobra.Command{
		Use: "log [flags] [FILE]", Short: "Print the audit log: what was called, and what became of it",
		Long: `Print the audit log: what was called, by which rule it ran or was refused, and how long it took, the latest
last. FILE is what hosts were given by --audit-log; without it, it is the one in the state directory. The files that
it was rotated to are read too. With --json each line is the record as it stands in the log.`,
		Example: `  toolhost log -f
  toolhost log --verdict deny --since 1d
  toolhost log --tool Bash --json | jq -r .command`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := q.check(); err != nil {
				return err
			}
			path := ""
			if len(args) > 0 {
				path = args[0]
				if _, err := os.Stat(path); err != nil {
					return err
				}
			} else if path, err = flags.ownState(); err == nil {
				path = filepath.Join(path, auditFile)
			}
			if err != nil {
				return err
			}
			return q.run(cmd.Context(), cmd.OutOrStdout(), path)
		},
	}
	flags.addState(cmd.Flags())
	cmd.Flags().BoolVarP(&q.follow, "follow", "f", false, "go on with what is recorded from now on, across rotations")
	cmd.Flags().StringVar(&q.tool, "tool", "", "only calls of this `TOOL`")
	cmd.Flags().StringVar(&q.verdict, "verdict", "", "only calls with this `VERDICT`: allow, ask or deny")
	cmd.Flags().StringVar(&q.since, "since", "", "only calls since this `TIME`: 2026-01-31T15:04, or how long ago: "+
		"10m, 30d")
	cmd.Flags().IntVarP(&q.limit, "limit", "n", 50, "at most the last so many; 0 for all")
	cmd.Flags().BoolVar(&q.asJSON, "json", false, "print the records as they are, one JSON object a line")
	completeFlag(cmd, "tool", allTools)
	completeFlag(cmd, "verdict", func() []string { return verdicts })
	return cmd
}

// check refuses what no record can fit.
func (q *logQuery) check() (err error) {
	if q.verdict != "" && !slices.Contains(verdicts, q.verdict) {
		return usageError{fmt.Errorf("--verdict %s: it is one of %s%s", q.verdict, strings.Join(verdicts, ", "),
			didYouMean(q.verdict, verdicts))}
	}
	if near := didYouMean(q.tool, allTools()); q.tool != "" && near != "" && !slices.Contains(allTools(), q.tool) {
		// Names of tools of other servers are not like ours.
		return usageError{fmt.Errorf("--tool %s: there is no such tool%s", q.tool, near)}
	}
	if q.limit < 0 {
		return usageError{fmt.Errorf("--limit %d: expected 0 or more", q.limit)}
	}
	q.from, err = sinceTime(q.since)
	return err
}

// run prints what is in the log, and continues if that is asked for.
func (q *logQuery) run(ctx context.Context, w io.Writer, path string) error {
	f, err := openLog(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	t := &logTail{path: path, file: f}
	defer t.close()
	lines, err := t.last(q)
	if err != nil {
		return err
	}
	for _, line := range lines {
		if err := q.print(w, line); err != nil {
			return err
		}
	}
	if len(lines) == 0 && !q.follow && !q.asJSON {
		_, err := fmt.Fprintf(os.Stderr, "no call is recorded in %s that the flags select\n", sanitized(path))
		return err
	}
	for q.follow {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followInterval):
		}
		if err := t.more(func(line []byte) error {
			if !q.fits(line) {
				return nil
			}
			return q.print(w, line)
		}); err != nil {
			return err
		}
	}
	return nil
}

// openLog opens a log. If the log is a pipe, it does not wait for a writer.
func openLog(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is not a file that can be read again", path), err, f.Close())
	}
	return f, nil
}

// A logTail reads a log that others write and rotate.
type logTail struct {
	path string
	file *os.File // the file that the path named when it was last examined; nil if there was none
	part []byte   // the beginning of a line whose end is not written yet
}

func (t *logTail) close() {
	if t.file != nil {
		t.file.Close()
	}
}

// last returns the last lines that fit, from the files that the log was rotated to as well, and leaves the file at
// its end.
func (t *logTail) last(q *logQuery) (lines [][]byte, err error) {
	for n := 0; n == 0 || q.limit == 0 || len(lines) < q.limit; n++ {
		var of [][]byte
		keep := func(line []byte) error {
			if q.fits(line) {
				if of = append(of, slices.Clone(line)); q.limit > 0 && len(of) > 2*q.limit {
					of = slices.Clone(of[len(of)-q.limit:])
				}
			}
			return nil
		}
		if n == 0 {
			err = t.read(keep)
		} else {
			err = t.readOlder(n, keep)
		}
		switch {
		case n > 0 && errors.Is(err, fs.ErrNotExist):
			return lines, nil
		case err != nil:
			return nil, err
		}
		lines = append(of, lines...)
		if q.limit > 0 && len(lines) > q.limit {
			lines = lines[len(lines)-q.limit:]
		}
	}
	return lines, nil
}

// readOlder calls do for each complete line of the log before n rotations.
func (t *logTail) readOlder(n int, do func(line []byte) error) error {
	f, err := openLog(rotated(t.path, n))
	if err != nil {
		return err
	}
	defer f.Close()
	return (&logTail{file: f}).read(do)
}

// rotated is the name of the log before n rotations.
func rotated(path string, n int) string { return fmt.Sprintf("%s.%d", path, n) }

// read calls do for each complete line after the last one that was read.
func (t *logTail) read(do func(line []byte) error) error {
	if t.file == nil {
		return nil
	}
	r := bufio.NewReaderSize(t.file, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		t.part = append(t.part, line...)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		whole := t.part
		t.part = nil
		if err := do(whole); err != nil {
			return err
		}
	}
}

// more reads what was written since the last read, also in files that were rotated since.
func (t *logTail) more(do func(line []byte) error) error {
	if err := t.read(do); err != nil {
		return err
	}
	now, err := os.Stat(t.path)
	if err != nil {
		return nil // between two steps of a rotation, or before the first record
	}
	if t.file != nil {
		was, err := t.file.Stat()
		if err != nil {
			return err
		}
		at, err := t.file.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		if os.SameFile(was, now) {
			if now.Size() < at { // truncated in place
				t.part = nil
				_, err = t.file.Seek(0, io.SeekStart)
			}
			return err
		}
		if err := t.read(do); err != nil { // the rest of the rotated file
			return err
		}
		if err := t.between(was, do); err != nil {
			return err
		}
		t.close()
	}
	t.part = nil
	if t.file, err = openLog(t.path); err != nil {
		t.file = nil
		return nil
	}
	return t.read(do)
}

// between reads the files that were begun and rotated after was.
func (t *logTail) between(was fs.FileInfo, do func(line []byte) error) error {
	n := 1
	for ; ; n++ {
		info, err := os.Stat(rotated(t.path, n))
		if err != nil {
			return nil // it was rotated away, or moved by another program
		}
		if os.SameFile(info, was) {
			break
		}
	}
	for n--; n > 0; n-- {
		if err := t.readOlder(n, do); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// fits reports whether a line is a matching record. An incomplete line, after a crash, is not.
func (q *logQuery) fits(line []byte) bool {
	var r audit.Record
	return json.Unmarshal(line, &r) == nil && (q.tool == "" || r.Tool == q.tool) &&
		(q.verdict == "" || r.Verdict == q.verdict) && !r.Time.Before(q.from)
}

func (q *logQuery) print(w io.Writer, line []byte) error {
	if q.asJSON {
		_, err := w.Write(line)
		return err
	}
	var r audit.Record
	if err := json.Unmarshal(line, &r); err != nil {
		return err
	}
	verdict := cmp.Or(r.Verdict, "-")
	text := coloured(w, actionColours[r.Verdict], fmt.Sprintf("%-5s", verdict))
	what := cmp.Or(r.Command, strings.Join(slices.Concat(r.Writes, r.Reads, r.Effects), " "))
	if r.Command == "" && r.Summary != "" {
		what += "  " + r.Summary
	}
	tail := fmt.Sprintf("%.0f ms", r.Millis)
	if r.Rule != "" && r.Verdict != "allow" {
		tail += ", by " + r.Rule
	}
	if len(r.Phases) > 0 {
		last := r.Phases[len(r.Phases)-1]
		tail += ", " + strings.TrimSpace(string(last.What)+" by "+string(last.By))
	}
	if r.Client != "" {
		tail += ", " + strings.TrimSpace(r.Client+" "+r.ClientVersion)
	}
	if r.Error != "" && r.Verdict == "allow" {
		tail += ", failed"
	}
	_, err := fmt.Fprintf(w, "%s  %s  %-12s %s  %s\n", r.Time.Local().Format("2006-01-02 15:04:05"), text,
		sanitized(r.Tool), sanitized(strings.TrimSpace(what)), coloured(w, faint, "("+sanitized(tail)+")"))
	return err
}
