package console

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/mcpserver"
)

// A question waits for an answer of the person.
type question struct {
	ID    uint64
	Asked mcpserver.OperatorQuestion
	Since time.Time
	Until time.Time // zero: until the call ends
	Input []field   // as it is shown to the person
	Form  form      // zero if the question is about a permission
	reply chan mcpserver.Answer

	browser string // the only browser that may answer by the link; "" until the first has pressed a button
	wrong   int    // how many wrong codes were tried at the link
}

// An outcome is the result of a question.
type outcome struct {
	ID   uint64
	Key  string // of the question: [mcpserver.Question.ID]
	Tool string
	Gist string // the question in one line
	Text string // "was allowed once at 15:04:05"
	At   time.Time
}

// maxResolved is how many outcomes of questions are kept to be shown.
const maxResolved = 256

// Present reports whether a person can answer: a page is or recently was open, questions wait in any case, or they
// are announced.
func (c *Console) Present() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.always || c.away != nil || c.pages > 0 || time.Since(c.left) < reconnectTime
}

// reconnectTime is how long a person counts as present after a page was closed, because it takes a moment to open
// another one.
const reconnectTime = 5 * time.Second

// Ask shows a question until it is answered or ctx is done.
func (c *Console) Ask(ctx context.Context, asked mcpserver.OperatorQuestion) mcpserver.Answer {
	q, err := c.add(ctx, asked)
	if err != nil {
		return mcpserver.Answer{Reason: err.Error()}
	}
	told, stop := context.WithCancel(ctx)
	defer stop()
	c.announce(told, q)
	select {
	case a := <-q.reply:
		return a
	case <-ctx.Done():
	}
	text := "has ended: its call was cancelled"
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		if text = "has ended: no one answered in time"; asked.Form == nil {
			text += ", so the call was refused"
		}
	}
	if c.resolve(q.ID, text) != nil { // already resolved
		return <-q.reply
	}
	return mcpserver.Answer{}
}

func (c *Console) add(ctx context.Context, asked mcpserver.OperatorQuestion) (*question, error) {
	input := fields(asked.Input)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.checkLimit(asked.Principal); err != nil {
		return nil, err
	}
	c.lastQuestion++
	q := &question{ID: c.lastQuestion, Asked: asked, Since: time.Now(), Input: input, Form: newForm(asked.Form),
		reply: make(chan mcpserver.Answer, 1)}
	q.Until, _ = ctx.Deadline()
	c.waiting = append(c.waiting, q)
	c.notifyAsked()
	return q, nil
}

// checkLimit returns an error if no further question about calls of a principal may wait. The caller holds the lock.
func (c *Console) checkLimit(principal string) error {
	mine := 0
	for _, q := range c.waiting {
		if q.Asked.Principal == principal {
			mine++
		}
	}
	switch {
	case len(c.waiting) == MaxWaiting:
		return fmt.Errorf("%d questions wait at the console already", MaxWaiting)
	case mine == maxOfOne:
		return fmt.Errorf("%d questions of this caller wait at the console already", maxOfOne)
	}
	return nil
}

// decisionText returns how a decision is described afterwards, or "" if it is not a valid decision.
func decisionText(decision string, at time.Time) string {
	switch decision {
	case mcpserver.AllowOnce:
		return "was allowed once at " + clock(at)
	case mcpserver.AlwaysAllow:
		return "was allowed at " + clock(at) + ", and will be from now on"
	case mcpserver.AllowHost:
		return "was allowed to all programs at " + clock(at) + ", and will be from now on"
	case mcpserver.DenyIt:
		return "was denied at " + clock(at)
	}
	return ""
}

// answer answers a question. The error says why the answer has no effect.
func (c *Console) answer(id uint64, decision, reason string) (said string, err error) {
	text := decisionText(decision, time.Now())
	if text == "" {
		return "", errors.New("no decision was given: nothing has been decided")
	}
	q := c.find(id)
	if q != nil && q.Asked.Form != nil {
		return "", errors.New("no answer was given: nothing was sent")
	}
	if q != nil && !slices.Contains(q.Asked.Decisions(), decision) {
		return "", errors.New("this call can be allowed once only: nothing has been decided")
	}
	if err := c.resolve(id, text); err != nil {
		return "", err
	}
	q.reply <- mcpserver.Answer{Decision: decision, Reason: reason}
	return fmt.Sprintf("%s %s.", q.Asked.Tool, text), nil
}

// find returns a waiting question, or nil.
func (c *Console) find(id uint64) *question {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waits(id)
}

// one returns a copy of a waiting question.
func (c *Console) one(id uint64) (question, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q := c.waits(id); q != nil {
		return *q, true
	}
	return question{}, false
}

// waits is find for a caller that holds the lock.
func (c *Console) waits(id uint64) *question {
	if i := slices.IndexFunc(c.waiting, func(q *question) bool { return q.ID == id }); i >= 0 {
		return c.waiting[i]
	}
	return nil
}

// fill answers the form of a question. The error says why the answer has no effect.
func (c *Console) fill(id uint64, action string, values url.Values) (said string, err error) {
	q := c.find(id)
	if q != nil && q.Asked.Form == nil {
		return "", errors.New("this question is about a permission: nothing has been decided")
	}
	answer := ""
	if q != nil {
		if answer, err = q.Form.answer(action, values); err != nil {
			return "", err
		}
	}
	text := formActions[action] + " at " + clock(time.Now())
	if err := c.resolve(id, text); err != nil {
		return "", err
	}
	q.reply <- mcpserver.Answer{Form: answer}
	return fmt.Sprintf("%s %s.", q.Asked.Tool, text), nil
}

// resolve removes a question from the waiting ones and records its outcome. It returns an error if the question was
// resolved before.
func (c *Console) resolve(id uint64, text string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.waiting, func(q *question) bool { return q.ID == id })
	if i < 0 {
		for _, o := range c.resolved {
			if o.ID == id {
				return fmt.Errorf("this had no effect: the call of %s %s", o.Tool, o.Text)
			}
		}
		return errors.New("this had no effect: there is no such question, or it was settled long ago")
	}
	c.resolved = append(c.resolved, c.waiting[i].outcome(text))
	if len(c.resolved) > maxResolved {
		c.resolved = slices.Delete(c.resolved, 0, 1)
	}
	c.waiting = slices.Delete(c.waiting, i, i+1)
	c.notifyAsked()
	return nil
}

// showResolvedFor is how long a question is still shown, with its outcome, after it was resolved, so that the page
// does not move under the pointer.
const showResolvedFor = 20 * time.Second

// outcome returns the outcome of a question.
func (q *question) outcome(text string) outcome {
	return outcome{
		ID: q.ID, Key: q.Asked.ID, Tool: clip(q.Asked.Tool, maxName), Text: text, At: time.Now(),
		Gist: strings.TrimPrefix(clip(q.Asked.Gist, maxName), q.Asked.Tool+": "),
	}
}

// questions returns the waiting questions, oldest first, and the outcomes of those that were resolved recently. With
// a key it returns only the question with that key, even if it was resolved earlier.
func (c *Console) questions(key string) (waiting []question, settled []outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, q := range c.waiting {
		if key == "" || q.Asked.ID == key {
			waiting = append(waiting, *q)
		}
	}
	for _, o := range c.resolved {
		if key == o.Key && key != "" || key == "" && time.Since(o.At) < showResolvedFor {
			settled = append(settled, o)
		}
	}
	return waiting, settled
}

// URL returns the address of the page of a question, or "" if the pages are served on a socket.
func (c *Console) URL(id string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.base == "" {
		return ""
	}
	return c.base + address("approvals", id)
}
