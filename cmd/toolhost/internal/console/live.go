package console

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	g "maragu.dev/gomponents"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver"
)

// The live page: questions, sessions, tasks, calls.
type livePages struct{ *website }

// A liveBody is the start page. If its query has a session, it is the page of that session.
type liveBody struct {
	Token    string
	Closed   string
	Waiting  []question
	Resolved []outcome
	Sessions []agentSession // the sessions that the query selects
	All      []agentSession
	Tasks    []taskView
	Calls    []call
	Tools    []*builtin.Def
	Query    query
	Planning map[string]bool // by session key: the session was put into plan mode
	Since    uint64          // the page already has the calls that have not changed since this version

	short     func(path string) string
	answersTo string // the address that takes answers; "": the console's
}

func (s livePages) live(v pageRequest) liveBody {
	q := queryOf(v)
	b := liveBody{
		Token: v.session.token, Query: q, Calls: s.console.recent(q, MaxCalls), Tasks: taskPages(s).list(),
		Tools:    s.host.Tools(mcpserver.Local()),
		Sessions: s.console.agents(q.Session), All: s.console.agents(""), short: s.short,
	}
	b.Planning = map[string]bool{}
	for _, a := range b.Sessions {
		b.Planning[a.Key] = mcpserver.Modes(s.host).Planning(a.Principal, a.Scope)
	}
	b.Waiting, b.Resolved = s.console.questions(v.FormValue("id"))
	if err := s.operator.MayAnswer(); err != nil {
		b.Closed = err.Error()
	}
	return b
}

func (s livePages) show(w http.ResponseWriter, v pageRequest) {
	s.showWith(w, v, "", false, http.StatusOK)
}

func (s livePages) showWith(w http.ResponseWriter, v pageRequest, said string, failed bool, status int) {
	f := layout{Page: "live", Title: "Live", Said: said, Failed: failed}
	body := s.live(v)
	if body.Query.Session != "" {
		f.Title = "Session"
		if len(body.Sessions) == 0 {
			s.gone(w, v, "Session", "There is no such session, or it was idle for too long. The audit log may have its calls.")
			return
		}
	}
	f.Body = body
	s.write(w, v, status, f)
}

// setMode puts the conversation of a session into plan mode, or back into the mode in the settings.
func (s livePages) setMode(w http.ResponseWriter, v pageRequest) {
	said, err := s.mode(v.PathValue("session"), v.PostFormValue("mode"))
	status := http.StatusOK
	if err != nil {
		said, status = sentence(err.Error()), http.StatusConflict
	}
	s.showWith(w, v, said, err != nil, status)
}

func (s livePages) mode(session, mode string) (said string, err error) {
	all := s.console.agents(session)
	if len(all) == 0 || mode != "plan" && mode != "default" {
		return "", errors.New("there is no such session or mode: nothing was changed")
	}
	if err := s.operator.MayAnswer(); err != nil && mode != "plan" { // plan mode only forbids more
		return "", fmt.Errorf("the mode was not changed. %w", err)
	}
	if err := mcpserver.Modes(s.host).Set(all[0].Scope, mode == "plan"); err != nil {
		return "", err
	}
	if mode == "plan" {
		return "The conversation is in plan mode: edits are refused, and what commands change is dropped.", nil
	}
	return "The conversation has the mode of the settings again.", nil
}

// showPart renders one list of a page, for its script.
func (s livePages) showPart(w http.ResponseWriter, v pageRequest) {
	var part g.Node
	if name := v.PathValue("name"); name == "history" {
		body, _ := historyPages(s).list(v) // the page of the history shows the error
		part = body.list()
	} else {
		body := s.live(v)
		body.Since, _ = strconv.ParseUint(v.Header.Get(headerSince), 10, 64) // 0 if absent: the page has nothing yet
		part = body.part(name)
	}
	if part == nil {
		http.NotFound(w, v.Request)
		return
	}
	render(w, http.StatusOK, part)
}

// headerSince is the header with the latest version of a call that a page shows.
const headerSince = "X-Since"

// showCall shows one call with everything that is kept of it.
func (s livePages) showCall(w http.ResponseWriter, v pageRequest) {
	id, err := strconv.ParseUint(v.PathValue("id"), 10, 64)
	for _, c := range s.console.recent(query{}, MaxCalls) {
		switch {
		case err != nil:
		case c.Former == id && id != 0:
			http.Redirect(w, v.Request, address("calls", strconv.FormatUint(c.ID, 10)), http.StatusSeeOther)
			return
		case c.ID == id:
			s.write(w, v, http.StatusOK, layout{Page: "call", Title: "Call", Body: s.callBody(v, c)})
			return
		}
	}
	s.gone(w, v, "Call", "This call is no longer kept here. The audit log has it.")
}

// callBody returns the page of a call, with its question while that waits, and with what the call changed.
func (s livePages) callBody(v pageRequest, c call) callBody {
	b := callBody{live: liveBody{Token: v.session.token, short: s.short}, Call: c}
	if err := s.operator.MayAnswer(); err != nil {
		b.live.Closed = err.Error()
	}
	if c.Record.Question != "" {
		b.live.Waiting, b.live.Resolved = s.console.questions(c.Record.Question)
	}
	b.Change = historyPages(s).changeOf(c)
	return b
}
