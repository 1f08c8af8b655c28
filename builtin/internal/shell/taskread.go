package shell

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// maxReaders limits the scopes with a read offset in a task. Others read from the
// beginning again.
const maxReaders = 64

// A Chunk is a part of the output of a task, with the state of the task.
type Chunk struct {
	Text    string // complete lines, unless the task has ended
	Offset  int64  // of Text; greater than the requested one if older output was dropped
	Skipped int64  // requested bytes before Text that were dropped; set by [Tasks.Read]
	Next    int64  // offset for the next reading
	Line    string // the incomplete last line, which is returned again when it is complete
	Matched bool   // [Reading.Until] matches the last line of Text
	More    bool   // there is output after Text
	Done    bool
	Result  *Result // of a task that is done
	Cause   string  // why a task that is done was ended ("" if it ended by itself or by its timeout)
	Err     error   // why the command of a task that is done did not run
}

// A Reading says which output of a task to return, and what to wait for.
type Reading struct {
	// Scope is the conversation that reads. Its next reading starts at the end of this one.
	Scope string
	// Offset is the start. Nil means the end of the last reading of the scope.
	Offset *int64
	// Wait limits the wait for the end of the task. 0 means not to wait.
	Wait time.Duration
	// Until, if not nil, ends the wait at the first complete line that it matches. The
	// text ends with that line.
	Until *regexp.Regexp
}

// Read waits as the reading says, and returns the output of the task. A cancelled
// reading does not change where the next one starts.
func (s *Tasks) Read(ctx context.Context, principal, id string, r Reading) (Chunk, error) {
	t, err := s.find(principal, id)
	if err != nil {
		return Chunk{}, err
	}
	from, err := t.begin(r)
	if err != nil {
		return Chunk{}, err
	}
	match, err := t.wait(ctx, from, r)
	if err != nil {
		return Chunk{}, err
	}
	chunk, _ := t.after(from)
	if match != nil {
		chunk.endWith(*match)
	}
	chunk.Skipped = max(chunk.Offset-from, 0)
	t.answered(r.Scope, chunk)
	return chunk, chunk.Err
}

// Output returns what a task has written from an offset on. If there is nothing
// yet, it waits for output or for the task's end, at most for wait.
func (s *Tasks) Output(ctx context.Context, principal, id string, offset int64, wait time.Duration) (Chunk, error) {
	t, err := s.find(principal, id)
	if err != nil {
		return Chunk{}, err
	}
	if offset < 0 {
		return Chunk{}, negative(offset)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		chunk, more := t.after(offset)
		if chunk.Done || chunk.Text != "" || wait <= 0 {
			return chunk, chunk.Err
		}
		select {
		case <-more:
		case <-t.done:
		case <-timer.C:
			wait = 0
		case <-ctx.Done():
			return chunk, ctx.Err()
		}
	}
}

// after returns the output from an offset on, and a channel that is closed when more comes.
func (t *task) after(offset int64) (Chunk, <-chan struct{}) {
	done := t.over() // before the read: if true, the output is complete
	text, from, line, more := t.out.After(offset)
	var chunk Chunk
	if done {
		chunk = t.end()
	}
	chunk.Text, chunk.Offset, chunk.Next, chunk.Line = text, from, from+int64(len(text)), line
	return chunk, more
}

// end sets how the task has ended.
func (t *task) end() Chunk {
	c := Chunk{Done: true, Result: t.result, Err: t.err}
	if t.cause != nil {
		c.Cause = t.cause.Error()
	}
	return c
}

// begin returns the offset at which a reading starts. An offset past the end of the output means the end.
func (t *task) begin(r Reading) (int64, error) {
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

// wait waits for the end of the task, for a line that matches, or until the time is over.
func (t *task) wait(ctx context.Context, from int64, r Reading) (*match, error) {
	timer := time.NewTimer(r.Wait)
	defer timer.Stop()
	waits := r.Wait > 0
	for {
		done := t.over()
		var more <-chan struct{}
		if r.Until != nil {
			var chunk Chunk
			chunk, more = t.after(from)
			m, next := chunk.find(r.Until)
			if m != nil {
				return m, nil
			}
			from = next
		}
		if done || !waits {
			return nil, nil
		}
		select {
		case <-more:
		case <-t.done:
		case <-timer.C:
			waits = false
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
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
func (t *task) answered(scope string, c Chunk) {
	if c.Done {
		t.tellEnd(scope)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.read[scope]; !known && len(t.read) >= maxReaders {
		for other := range t.read {
			if other != t.scope {
				delete(t.read, other)
				break
			}
		}
	}
	t.read[scope] = c.Next
}

// tellEnd records that the end of the task was reported to scope. It returns true if scope started the task and the end was not reported before.
func (t *task) tellEnd(scope string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.endTold || scope != t.scope {
		return false
	}
	t.endTold = true
	return true
}

// Ended calls tell for each ended task of a scope that was not reported to it yet,
// in the order of their ends, until tell returns false.
func (s *Tasks) Ended(principal, scope string, tell func(TaskInfo, Chunk) bool) {
	s.mu.Lock()
	var ended []*task
	for _, t := range s.tasks {
		if t.principal == principal && t.scope == scope && t.over() {
			ended = append(ended, t)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(ended, func(a, b *task) int { return cmp.Or(a.ended.Compare(b.ended), strings.Compare(a.id, b.id)) })
	for _, t := range ended {
		if !t.tellEnd(scope) {
			continue
		}
		if !tell(t.info(), t.end()) {
			t.untell()
			return
		}
	}
}

// untell reverts tellEnd.
func (t *task) untell() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endTold = false
}

// Notices returns the notices on a running task that were not reported yet. All are reported again with the end of the task.
// It returns nil for a task that is not known or has ended.
func (s *Tasks) Notices(principal, id string) []string {
	t, err := s.find(principal, id)
	if err != nil || t.news == nil || t.over() {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	fresh := slices.DeleteFunc(t.news(), func(note string) bool { return slices.Contains(t.told, note) })
	t.told = append(t.told, fresh...)
	return fresh
}
