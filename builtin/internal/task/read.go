package task

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/shell"
)

// maxReaders limits the scopes with a read offset in a task. Others read from the
// beginning again.
const maxReaders = 64

// A Chunk is a part of the output of a task, with the state of the task.
type Chunk struct {
	Text    string // complete lines, unless the task has ended
	Offset  int64  // of Text; greater than the requested one if older output was dropped
	Skipped int64  // requested bytes before Text that were dropped; set by [Task.Read]
	Next    int64  // offset for the next reading
	Line    string // the incomplete last line, which is returned again when it is complete
	Matched bool   // [Reading.Until] matches the last line of Text, or Line
	More    bool   // there is output after Text
	Done    bool
	Result  *shell.Result // of a task that is done
	Cause   string        // why a task that is done was ended ("" if it ended by itself or by its timeout)
	Err     error         // why the command of a task that is done did not run
}

// A Reading says which output of a task to return, and what to wait for.
type Reading struct {
	// Scope is the conversation that reads. Its next reading starts at the end of this one.
	Scope string
	// Offset is the start. Nil means the end of the last reading of the scope.
	Offset *int64
	// Wait limits the wait for the end of the task. 0 means not to wait.
	Wait time.Duration
	// Until, if not nil, ends the wait at the first line that it matches. The text ends with that line, unless it is the
	// incomplete last one, which is matched if it stays for [lineQuiet].
	Until *regexp.Regexp
}

// Read waits as the reading says, and returns the output of the task. A cancelled
// reading does not change where the next one starts.
func (t *Task) Read(ctx context.Context, r Reading) (Chunk, error) {
	from, err := t.begin(r)
	if err != nil {
		return Chunk{}, err
	}
	var found *match
	var prompt string // an incomplete line that matches
	search := from
	err = t.wait(ctx, r.Wait, func(quiet bool) (stop bool, more <-chan struct{}, again time.Duration) {
		if r.Until == nil {
			return false, nil, 0
		}
		chunk, more := t.after(search)
		found, search = chunk.find(r.Until)
		switch {
		case found != nil:
			return true, more, 0
		case chunk.Line == "" || !r.Until.MatchString(chunk.Line):
			prompt = ""
			return false, more, 0
		case quiet && prompt == chunk.Line:
			return true, more, 0
		}
		prompt = chunk.Line
		return false, more, lineQuiet
	})
	if err != nil {
		return Chunk{}, err
	}
	chunk, _ := t.after(from)
	switch {
	case found != nil:
		chunk.endWith(*found)
	case prompt != "" && chunk.Line == prompt:
		chunk.Matched = true
	}
	chunk.Skipped = max(chunk.Offset-from, 0)
	t.answered(r.Scope, chunk)
	return chunk, chunk.Err
}

// Output returns what a task has written from an offset on. If there is nothing
// yet, it waits for output or for the task's end, at most for limit.
func (t *Task) Output(ctx context.Context, offset int64, limit time.Duration) (chunk Chunk, err error) {
	if offset < 0 {
		return Chunk{}, negative(offset)
	}
	err = t.wait(ctx, limit, func(bool) (stop bool, more <-chan struct{}, again time.Duration) {
		chunk, more = t.after(offset)
		return chunk.Text != "", more, 0
	})
	if err == nil {
		err = chunk.Err
	}
	return chunk, err
}

// lineQuiet is how long an incomplete line must stay as it is to be matched: a prompt stays, a progress bar is drawn
// over.
const lineQuiet = 250 * time.Millisecond

// wait waits until look returns true, the task has ended, or the time is over. It calls look again when the channel is
// closed that look has returned, once after the end of the task, and with quiet if again has passed without either.
func (t *Task) wait(ctx context.Context, limit time.Duration, look func(quiet bool) (stop bool, more <-chan struct{},
	again time.Duration)) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for quiet := false; ; {
		done := t.Over()
		stop, more, again := look(quiet)
		if stop || done || limit <= 0 {
			return nil
		}
		var passed <-chan time.Time
		if quiet = false; again > 0 {
			passed = time.After(again)
		}
		select {
		case <-more:
		case <-passed:
			quiet = true
		case <-t.done:
		case <-timer.C:
			limit = 0
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// after returns the output from an offset on, and a channel that is closed when more comes.
func (t *Task) after(offset int64) (Chunk, <-chan struct{}) {
	done := t.Over() // before the read: if true, the output is complete
	text, from, line, more := t.out.After(offset)
	var chunk Chunk
	if done {
		chunk = t.end()
	}
	chunk.Text, chunk.Offset, chunk.Next, chunk.Line = text, from, from+int64(len(text)), line
	return chunk, more
}

// end sets how the task has ended.
func (t *Task) end() Chunk {
	c := Chunk{Done: true, Result: t.result, Err: t.err}
	if t.cause != nil {
		c.Cause = t.cause.Error()
	}
	return c
}

// begin returns the offset at which a reading starts. An offset past the end of the output means the end.
func (t *Task) begin(r Reading) (int64, error) {
	switch {
	case r.Offset == nil:
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.read[r.Scope], nil
	case *r.Offset < 0:
		return 0, negative(*r.Offset)
	}
	_, from, _, _ := t.out.After(*r.Offset)
	return min(from, *r.Offset), nil // Skipped reports dropped output
}

func negative(offset int64) error {
	return fmt.Errorf("offset: expected 0 or more, got %d", offset)
}

// A match is a line that [Reading.Until] matches.
type match struct {
	line string // with its newline
	at   int64
}

// find returns the first line that matches, or the offset of the first incomplete line.
func (c Chunk) find(until *regexp.Regexp) (m *match, next int64) {
	next = c.Offset
	for line := range strings.Lines(c.Text) {
		text, complete := strings.CutSuffix(line, "\n")
		if !complete && !c.Done {
			break
		}
		if until.MatchString(text) {
			return &match{line, next}, next
		}
		next += int64(len(line))
	}
	return nil, next
}

// endWith cuts the chunk after a line that matched.
func (c *Chunk) endWith(m match) {
	end := m.at + int64(len(m.line))
	if c.Offset > m.at { // the line was dropped because of much later output
		c.Text, c.Offset = m.line, m.at
	} else {
		c.Text = c.Text[:end-c.Offset]
	}
	c.More = c.Next > end
	c.Next, c.Line, c.Matched = end, "", true
}

// answered records what a scope has received.
func (t *Task) answered(scope string, c Chunk) {
	if c.Done {
		t.tellEnd(scope)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.read[scope]; !known && len(t.read) >= maxReaders {
		for other := range t.read {
			if other != t.Scope {
				delete(t.read, other)
				break
			}
		}
	}
	t.read[scope] = c.Next
}

// tellEnd records that the end of the task was reported to scope. It returns true if scope started the task and the end
// was not reported before.
func (t *Task) tellEnd(scope string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.endTold || scope != t.Scope {
		return false
	}
	t.endTold = true
	return true
}

// untell reverts tellEnd.
func (t *Task) untell() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endTold = false
}

// NewNotices returns the notices on a running task that were not reported yet. All are reported again with the end of
// the task. It returns nil for a task that has ended.
func (t *Task) NewNotices() []string {
	if t.Notices == nil || t.Over() {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	fresh := slices.DeleteFunc(t.Notices(), func(note string) bool { return slices.Contains(t.told, note) })
	t.told = append(t.told, fresh...)
	return fresh
}
