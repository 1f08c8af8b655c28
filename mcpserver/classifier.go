package mcpserver

import (
	"context"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/hook"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/mcpserver/audit"
)

// byClassifier is the value of [Answer.By] for the classifier.
const byClassifier = "classifier"

// classify asks the classifier of the settings whether a call can run without a person, and returns the channel of its
// answer. It returns nil if the classifier is not asked: in another mode, without a classifier, or if a rule always
// requires a person.
func (s *hookset) classify(ctx context.Context, c *execCall, v guard.Verdict) <-chan hook.Decision {
	set := s.policies.settings.Current()
	group := set.Hooks[settings.Classifier]
	if v.Action != guard.Ask || v.Final || c.env.Policy.Mode() != settings.ModeAuto || len(group) == 0 ||
		c.req.Answer != nil {
		return nil
	}
	input, err := c.call.Input()
	if err != nil {
		return nil
	}
	call := s.hookCall(c.admission, c.env.Policy, c.req.Tool, input)
	answer := make(chan hook.Decision, 1)
	asking := context.WithValue(ctx, askerKey{}, c)
	s.classifying.Go(func() { answer <- s.runner.Classify(asking, group, call, v.Reason) })
	return answer
}

// classified waits for the classifier if no person is asked in the meantime: because no person can be asked, or
// because the question ends the call.
func (c *execCall) classified(answer <-chan hook.Decision, v guard.Verdict, rec *audit.Record) guard.Verdict {
	if answer == nil || c.req.CanAsk && !c.req.Repeats {
		return v
	}
	d := <-answer
	if d.Action != hook.Allow {
		return v
	}
	rec.Did(audit.PhaseApproved, byClassifier, d.From)
	v.Action, v.Reason = guard.Allow, "The classifier allowed it."
	return v
}

// first returns the first decision on a question: the classifier's, if it allows the call, or the person's.
func (q *Question) first(ctx context.Context, ask func(context.Context) *Answer) *Answer {
	if q.classifier == nil {
		return ask(ctx)
	}
	asking, withdraw := context.WithCancel(ctx)
	defer withdraw()
	person := make(chan *Answer, 1)
	go func() { person <- ask(asking) }()
	select {
	case a := <-person:
		return a
	case d := <-q.classifier:
		if d.Action == hook.Allow {
			return &Answer{State: q.State, Decision: AllowOnce, By: byClassifier}
		}
	}
	return <-person
}
