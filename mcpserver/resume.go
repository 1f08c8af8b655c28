package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/mcpserver/audit"
	"github.com/toolhost/toolhost/mcpserver/internal/approvals"
)

// A modern client is asked about a program by the result of the call, whose command continues as a task. The client repeats the call with
// the answer, and the call continues from there.

// resumePrefix is the prefix of the states of questions about programs. The rest is a state of package approvals.
const resumePrefix = "exec."

// errGone refuses a state for which no command waits: it is from another process, was answered before, or came too
// late.
var errGone = errors.New("the answer came too late or twice, or to another host: the program that asked no longer waits. Nothing was run by this call. " +
	"TaskOutput tells what became of the command if it was answered here; to run it from its beginning, call again without the answer")

// A suspended is a call that waits for the answer to a question about a program.
type suspended struct {
	call   *execCall
	asked  *builtin.ExecAsked
	q      *Question
	digest []byte
}

// A suspensions holds the waiting calls by the states of their questions.
type suspensions struct {
	mu    sync.Mutex
	calls map[string]*suspended
}

func (s *suspensions) put(state string, c *suspended) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == nil {
		s.calls = map[string]*suspended{}
	}
	s.calls[state] = c
	time.AfterFunc(approvals.Lifetime, func() { s.take(state) })
}

func (s *suspensions) take(state string) *suspended {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.calls[state]
	delete(s.calls, state)
	return c
}

// suspend ends a call with a question about a program.
func (p *approver) suspend(c *execCall, result builtin.Result, rec *audit.Record, reply Reply) Reply {
	asked := result.Asks
	q := c.question(asked.Question)
	if q.Form = asked.Elicit; q.Form != nil {
		q.URL = "" // only the client can show the question
	}
	s := &suspended{call: c, asked: asked, q: q}
	s.digest = digest(c.admission.scope.Asked(c.admission.session != ""), c.req, q.Verdict, append(q.Decisions(), asked.Task))
	q.State = resumePrefix + p.questions.Issue(c.admission.principal, s.digest)
	p.suspensions.put(q.State, s)
	q.digest = s.digest
	rec.Verdict, rec.Question, reply.Question = guard.Ask.String(), q.ID, q
	rec.Did(audit.PhaseAsked, c.req.askedBy(), asked.Question.Text)
	return reply.with(result)
}

// resumes reports whether a request has the answer to a question about a program.
func resumes(req Request) bool {
	return req.Answer != nil && strings.HasPrefix(req.Answer.State, resumePrefix)
}

// resume continues a suspended call with the answer in req. The error says why the answer does not count.
func (p *approver) resume(ctx context.Context, a *Admission, req Request, rec *audit.Record) (*suspended, builtin.Result, guard.Verdict, error) {
	state := req.Answer.State
	s := p.suspensions.take(state)
	if s == nil {
		return nil, builtin.Result{}, guard.Verdict{}, errGone
	}
	mine := digest(a.scope.Asked(a.session != ""), req, s.q.Verdict, append(s.q.Decisions(), s.asked.Task))
	if err := p.questions.Redeem(strings.TrimPrefix(state, resumePrefix), mine); err != nil {
		if a.principal != s.call.admission.principal || string(mine) != string(s.digest) {
			p.suspensions.put(state, s) // the valid answer may still come
		}
		return nil, builtin.Result{}, guard.Verdict{}, err
	}
	p.waiting.resume(rec, state, mine)
	if s.asked.Elicit != nil {
		rec.Did(audit.PhaseApproved, req.Answer.By, s.asked.Question.Text)
		v := s.q.Verdict
		v.Action = guard.Allow
		result, err := s.asked.Answer(ctx, json.RawMessage(req.Answer.Form))
		if err != nil {
			result = refused(err)
		}
		return s, result, v, nil
	}
	answer := s.call.outcome(s.q, req.Answer, s.call.key(s.asked.Question))
	v, what := s.q.Verdict, audit.PhaseRefused
	if v.Action = guard.Deny; answer.Allowed {
		v.Action, what = guard.Allow, audit.PhaseApproved
	}
	rec.Did(what, req.Answer.By, s.asked.Question.Text)
	result, err := s.asked.Resume(ctx, answer)
	if err != nil {
		result = refused(err)
	}
	return s, result, v, nil
}
