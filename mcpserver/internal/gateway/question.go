package gateway

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/builtin"
)

// Limits of the questions of servers.
const (
	maxRounds  = 5               // of questions of a modern server about one call
	answerTime = 5 * time.Minute // for the user
)

// fulfil answers the input requests in the result of a modern server. It adds the answers to params, with which the
// call is repeated, and reports whether there were any requests.
func (s *session) fulfil(ctx context.Context, env *builtin.Env, raw json.RawMessage, params map[string]any) bool {
	var asked struct {
		ResultType    string
		InputRequests map[string]struct {
			Method string
			Params json.RawMessage
		}
		RequestState json.RawMessage
	}
	if json.Unmarshal(raw, &asked) != nil || asked.ResultType != "input_required" {
		return false
	}
	answers := map[string]json.RawMessage{}
	for _, id := range slices.Sorted(maps.Keys(asked.InputRequests)) {
		switch r := asked.InputRequests[id]; r.Method {
		case "elicitation/create":
			answer, err := s.u.ask(ctx, r.Params, env.Client)
			if err != nil {
				answer = answered("decline", nil) // a form that cannot be shown
			}
			answers[id] = answer
		case "roots/list":
			answers[id] = s.u.roots()
		}
	}
	params["inputResponses"] = answers
	if asked.RequestState != nil {
		params["requestState"] = asked.RequestState
	}
	return true
}

// ask shows the question of a server about a call to a person, and returns the response for the server.
func (u *upstream) ask(ctx context.Context, params json.RawMessage, c builtin.Client) (json.RawMessage, error) {
	var ask interface {
		params(server string) json.RawMessage
		answer(result json.RawMessage) json.RawMessage
	}
	page, err := newPage(params)
	if ask = page; err == nil && page == nil || !c.OpensPages {
		ask, err = newForm(params)
	}
	if err != nil {
		return nil, err
	}
	if c.Elicit == nil {
		return answered("decline", nil), nil
	}
	if ask == page && c.PageDone != nil {
		u.pages.opened(page.id, c.PageDone)
	}
	result, err := c.Elicit(ctx, ask.params(u.srv.Name))
	if err != nil {
		return answered("cancel", nil), nil
	}
	return ask.answer(result), nil
}

// A page is a page that a server asks the user to open, such as one that asks for a key. The client shows its whole
// address, and the answer is only whether the user agrees to open it.
type page struct {
	message, url, id string
}

// pages are the pages that clients were asked to open and that are not done yet.
type pages struct {
	mu   sync.Mutex
	open map[string]func(id string)
}

// maxOpenPages is how many pages of a connection are remembered.
const maxOpenPages = 64

// opened records the function that tells a client when a page is done.
func (p *pages) opened(id string, tell func(id string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil || len(p.open) >= maxOpenPages {
		p.open = map[string]func(string){}
	}
	p.open[id] = tell
}

// done tells the client that was asked to open the page that the page is done.
func (p *pages) done(id string) {
	p.mu.Lock()
	tell := p.open[id]
	delete(p.open, id)
	p.mu.Unlock()
	if tell != nil {
		tell(cleanText(id, maxLine))
	}
}

// maxPageURL is the longest address of a page, in bytes.
const maxPageURL = 2000

// newPage reads the params of a question. It returns nil if they are not about a page.
func newPage(params json.RawMessage) (*page, error) {
	var p struct{ Mode, Message, URL, ElicitationID string }
	if json.Unmarshal(params, &p) != nil || p.Mode != "url" {
		return nil, nil
	}
	u, err := url.Parse(p.URL)
	switch {
	case err != nil || u.Host == "" || len(p.URL) > maxPageURL || p.URL != cleanText(p.URL, maxPageURL):
		return nil, formErrorf("url: an address of at most %d characters is expected", maxPageURL)
	case u.User != nil:
		return nil, formErrorf("url: a user in the address is not supported")
	case u.Scheme != "https" && (u.Scheme != "http" || permittedAddress(u.Host, u.Hostname(), User) != nil &&
		u.Hostname() != "localhost"):
		return nil, formErrorf("url: https is expected, not %q", cleanText(u.Scheme, maxFieldTitle))
	}
	return &page{p.Message, p.URL, p.ElicitationID}, nil
}

// params returns the params of the question for a client.
func (p *page) params(server string) json.RawMessage {
	message := strings.Join(strings.Fields(cleanText(p.message, maxQuestionText)), " ")
	out := map[string]any{"mode": "url", "message": "The server " + server + " asks you to open a page: " + message,
		"url": p.url}
	if p.id != "" {
		out["elicitationId"] = cleanText(p.id, maxLine)
	}
	return marshal(out)
}

// answer returns the response for the server.
func (p *page) answer(result json.RawMessage) json.RawMessage {
	var r struct{ Action string }
	if json.Unmarshal(result, &r) != nil || r.Action != "accept" && r.Action != "decline" {
		r.Action = "cancel"
	}
	return answered(r.Action, nil)
}

// codePages is the error code of a call that needs pages to be opened first.
const codePages = -32042

// openPages shows the pages that an error of a server names. It returns a text for the error that says whether the
// user opened them.
func (c caller) openPages(ctx context.Context, refusal *rpcError, u *upstream) string {
	var data struct{ Elicitations []json.RawMessage }
	if refusal.Code != codePages || json.Unmarshal(refusal.Data, &data) != nil || !c.env.OpensPages ||
		c.env.Elicit == nil {
		return ""
	}
	for _, params := range data.Elicitations[:min(len(data.Elicitations), maxForms)] {
		result, err := u.ask(ctx, params, c.env.Client)
		if err != nil || !strings.Contains(string(result), `"accept"`) {
			return ". The user did not open the page"
		}
	}
	return ". The user was shown the page: repeat the call when the user has completed it"
}

func answered(action string, content map[string]any) json.RawMessage {
	out := map[string]any{"action": action}
	if content != nil {
		out["content"] = content
	}
	return marshal(out)
}

// limited returns env with a limit for the questions of one call, which are asked one after the other.
func limited(env *builtin.Env) *builtin.Env {
	if env.Elicit == nil {
		return env
	}
	own, ask := *env, env.Elicit
	turn, left, mu := make(chan struct{}, 1), maxForms, sync.Mutex{}
	own.Elicit = func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
		mu.Lock()
		left--
		over := left < 0
		mu.Unlock()
		if over {
			return nil, fmt.Errorf("more than %d questions in one call", maxForms)
		}
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
			return ask(ctx, params)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &own
}

// An aside is a call that continues in the background while the client gets a question as the result.
type aside struct {
	name      string // of the call
	server    string
	env       *builtin.Env
	id        string
	cancel    context.CancelFunc
	questions chan question
	done      chan struct{}
	result    builtin.Result
	err       error
}

type question struct {
	params json.RawMessage
	answer chan json.RawMessage
}

// runAside is run for a modern client, which gets questions as results. Its scope can run other calls while it waits
// for the answer.
func (c caller) runAside(ctx context.Context, name string, r request, read reader) (builtin.Result, error) {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	a := &aside{name: name, server: c.s.Name, env: c.env, id: rand.Text(), cancel: cancel,
		questions: make(chan question), done: make(chan struct{})}
	own := *c.env
	own.Elicit = func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
		limit := time.NewTimer(answerTime)
		defer limit.Stop()
		q := question{params, make(chan json.RawMessage, 1)}
		select {
		case a.questions <- q:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-limit.C:
			return nil, errors.New("the client has stopped waiting for the call")
		}
		select {
		case answer := <-q.answer:
			return answer, nil
		case <-limit.C:
			return nil, errors.New("the question was not answered in time")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	c.g.work.Go(func() {
		defer close(a.done)
		defer cancel()
		defer context.AfterFunc(c.g.ctx, cancel)()
		a.result, a.err = caller{c.g, &own, c.s}.runHere(inner, r, read)
	})
	return a.await(ctx)
}

// await returns the next question of the call, or its result.
func (a *aside) await(ctx context.Context) (builtin.Result, error) {
	select {
	case q := <-a.questions:
		return builtin.Result{Text: "The server " + a.server + " asks a question.", Asks: &builtin.ExecAsked{
			Question: builtin.ExecQuestion{Text: "the question of the server " + a.server}, Task: a.id,
			Elicit: q.params,
			Answer: func(ctx context.Context, result json.RawMessage) (builtin.Result, error) {
				if len(result) == 0 {
					result = json.RawMessage(`{"action":"cancel"}`)
				}
				q.answer <- result
				return a.env.Long(ctx, a.name,
					func(ctx context.Context, _ *builtin.Env) (builtin.Result, error) { return a.await(ctx) })
			},
		}}, nil
	case <-a.done:
		return a.result, a.err
	case <-ctx.Done():
		a.cancel()
		<-a.done
		return a.result, a.err
	}
}
