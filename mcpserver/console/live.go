package console

import (
	"net/http"
	"strconv"
)

// The page of what happens now: questions, tasks, calls.
type livePages struct{ *website }

// A liveBody is the first page.
type liveBody struct {
	Token    string
	Closed   string
	Waiting  []question
	Resolved []outcome
	Tasks    []taskView
	Calls    []call
	Since    uint64 // of calls that have not changed since this version the page has everything already
	MaxCalls int

	short func(path string) string
}

func (s livePages) live(v pageRequest) liveBody {
	b := liveBody{Token: v.session.token, Calls: s.console.recent(), Tasks: taskPages{s.website}.list(), MaxCalls: MaxCalls, short: s.short}
	b.Waiting, b.Resolved = s.console.questions()
	if err := s.operator.MayAnswer(); err != nil {
		b.Closed = err.Error()
	}
	return b
}

func (s livePages) show(w http.ResponseWriter, v pageRequest) {
	s.showWith(w, v, "", false, http.StatusOK)
}

func (s livePages) showWith(w http.ResponseWriter, v pageRequest, said string, failed bool, status int) {
	s.write(w, v, status, layout{Page: "live", Title: "Live", Said: said, Failed: failed, Body: s.live(v)})
}

// showPart renders one list of the first page, for its script.
func (s livePages) showPart(w http.ResponseWriter, v pageRequest) {
	body := s.live(v)
	body.Since, _ = strconv.ParseUint(v.Header.Get(headerSince), 10, 64) // without one the page has nothing yet
	part := body.part(v.PathValue("name"))
	if part == nil {
		http.NotFound(w, v.Request)
		return
	}
	render(w, http.StatusOK, part)
}

// headerSince names the latest version of a call that a page shows.
const headerSince = "X-Since"
