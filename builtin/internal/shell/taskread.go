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

// maxReaders is how many scopes a task remembers the last answer of. A scope beyond
// it reads from the beginning again.
const maxReaders = 64

// A Chunk is a part of a task's output, and how the task is.
type Chunk struct {
	Text    string // complete lines, unless the task has ended
	Offset  int64  // where Text begins; beyond the asked offset if what lies between is no longer kept
	Skipped int64  // bytes before Text that were asked for and are no longer kept; set by [Tasks.Read]
	Next    int64  // where to read on from
	Line    string // the line that is not finished yet; it comes again when it is
	Matched bool   // the last line of Text is the first that [Reading.Until] matches
	More    bool   // there is output after Text
	Done    bool
	Result  *Result // of a task that is done
	Cause   string  // why a task that is done was ended ("" if it ended by itself or by its timeout)
	Err     error   // why the command of a task that is done did not run
}

// A Reading says which output of a task to return, and what to wait for.
type Reading struct {
	// Scope is the conversation that reads: its next reading begins where this one ends.
	Scope string
	// Offset is where to begin. Nil: where the last answer to the scope ended.
	Offset *int64
	// Wait bounds the wait for the end of the task. 0: do not wait.
	Wait time.Duration
	// Until, if not nil, ends the wait at the first complete line that it matches. The
	// text ends with that line.
	Until *regexp.Regexp
}

// Read waits as the reading says, and returns what the task has written. A reading
// that is cancelled does not count as an answer.
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
	done := t.over() // before the read: what follows is complete then
	text, from, line, more := t.out.After(offset)
	var chunk Chunk
	if done {
		chunk = t.end()
	}
	chunk.Text, chunk.Offset, chunk.Next, chunk.Line = text, from, from+int64(len(text)), line
	return chunk, more
}

// end says how a task that is over has ended.
func (t *task) end() Chunk {
	c := Chunk{Done: true, Result: t.result, Err: t.err}
	if t.cause != nil {
		c.Cause = t.cause.Error()
	}
	return c
}

// begin is where a reading begins. An offset past the end of the output stands for the end.
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
	return min(from, *r.Offset), nil // what is no longer kept is told of
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

// find returns the first line that matches, or where the lines begin that are not complete yet.
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
	if c.Offset > m.at { // a flood has followed: the line is no longer kept
		c.Text, c.Offset = m.line, m.at
	} else {
		c.Text = c.Text[:end-c.Offset]
	}
	c.More = c.Next > end
	c.Next, c.Line, c.Matched = end, "", true
}

// answered notes what a scope has received.
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

// tellEnd records that scope was told of the end of the task. It reports whether scope started the task and had not been told before.
func (t *task) tellEnd(scope string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.endTold || scope != t.scope {
		return false
	}
	t.endTold = true
	return true
}

// Ended calls tell for each task that a scope started, that has ended and whose end
// the scope was not told, in the order of their ends, until tell returns false.
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

// untell takes back that the scope of a task was told of its end.
func (t *task) untell() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endTold = false
}

// Notices returns what there is to tell of a task that runs, in addition to its output, and was not yet told. All of it is told again with its
// end. Of a task that is not known, or has ended, there is none.
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
