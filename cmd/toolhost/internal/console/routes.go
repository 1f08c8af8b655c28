package console

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/toolhost/toolhost/mcpserver"
)

// The checks of a request: the right host name, no other site as its origin, a session, and if it changes something,
// the token of its form.

// A pageRequest is an authenticated request.
type pageRequest struct {
	*http.Request
	session session
}

// A page serves one page.
type page func(w http.ResponseWriter, v pageRequest)

func (s *website) routes() http.Handler {
	return withDeadlines(s.checked(s.pages()), headerTime, writeTime)
}

func (s *website) pages() http.Handler {
	login, live, approvals := loginPages{s}, livePages{s}, approvalPages{s}
	tasks, history, servers, rules, audit := taskPages{s}, historyPages{s}, serverPages{s}, rulesPages{s}, auditPages{s}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /enter", login.show)
	mux.HandleFunc("POST /enter", login.enter)
	mux.Handle("GET /console.css", asset("console.css", "text/css; charset=utf-8"))
	mux.Handle("GET /console.js", asset("console.js", "text/javascript; charset=utf-8"))
	mux.Handle("GET /favicon.svg", asset("favicon.svg", "image/svg+xml"))
	for pattern, p := range map[string]page{
		"GET /{$}": live.show, "GET /part/{name}": live.showPart, "GET /events": withoutDeadline(live.stream),
		"GET /tasks/{key}": tasks.show, "GET /tasks/{key}/output/{from}": withoutDeadline(tasks.output),
		"GET /history": history.show, "GET /history/{id}": history.showChange, "GET /history/{id}/{view}": history.showChange,
		"GET /history/{id}/rewind": history.showRewind,
		"GET /sessions/{session}":  live.show, "GET /calls/{id}": live.showCall, "GET /approvals/{id}": approvals.show,
		"GET /servers": servers.show, "GET /servers/{name}": servers.show, "GET /rules": rules.show, "GET /audit": audit.show,
		"GET /agents": agentPages{s}.show, "GET /settings": settingsPages{s}.show,
		"GET /": func(w http.ResponseWriter, v pageRequest) { s.gone(w, v, "Not found", "The console has no such page.") },
	} {
		mux.HandleFunc(pattern, s.authenticated(p))
	}
	for pattern, p := range map[string]page{
		"POST /answer": approvals.answer, "POST /tasks/{key}/stop": tasks.stop,
		"POST /history": history.show, "POST /history/{id}/undo": history.undo, "POST /history/undo": history.undoChosen,
		"POST /history/{id}/rewind": history.rewind, "POST /sessions/{session}/mode": live.setMode,
		"POST /servers/{name}/restart": servers.restart, "POST /servers/{name}/accept": servers.accept,
		"POST /rules": rules.show, "POST /rules/change": rules.change, "POST /audit": audit.show, "POST /leave": login.leave,
	} {
		mux.HandleFunc(pattern, s.authenticated(checkToken(p)))
	}
	return mux
}

// withDeadlines sets deadlines for reading a request and for writing its response. Otherwise net/http would wait for
// a client that sends its body slowly, or does not read the response. A form that was read, and a long response, set
// other deadlines.
func withDeadlines(next http.Handler, send, read time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now, wire := time.Now(), http.NewResponseController(w)
		_ = wire.SetReadDeadline(now.Add(send)) // fails only if the connection is closed
		_ = wire.SetWriteDeadline(now.Add(send + read))
		next.ServeHTTP(w, r)
	})
}

// withoutDeadline removes the deadline for reading, for a page that waits for events. It does not call the page for a
// HEAD request, which would occupy the place of a page.
func withoutDeadline(p page) page {
	return func(w http.ResponseWriter, v pageRequest) {
		if v.Method == http.MethodHead {
			return
		}
		wire := http.NewResponseController(w)
		_ = wire.SetReadDeadline(time.Time{})
		p(w, v)
		_ = wire.SetReadDeadline(time.Now().Add(headerTime))
	}
}

// checked sets the headers of every response, and refuses requests from pages of other sites.
func (s *website) checked(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		if !isLoopbackHost(r.Host) {
			http.Error(w, fmt.Sprintf("The console is not addressed as %q.", mcpserver.Sanitize(r.Host)),
				http.StatusMisdirectedRequest)
			return
		}
		if err := s.cross.Check(r); err != nil {
			http.Error(w, "Another site's page asked for this: refused.", http.StatusForbidden)
			return
		}
		if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" &&
			r.URL.Path != "/enter" {
			http.Error(w, "Another site's page asked for this: refused.", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// headers are the headers of every response. Only our own style and script may be loaded, no other page may embed one
// of ours, and a script cannot turn text into HTML.
var headers = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src " +
		"'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Referrer-Policy":              "same-origin",
	"Cache-Control":                "no-store",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Permissions-Policy":           "camera=(), microphone=(), geolocation=()",
}

// authenticated serves a page to visitors with a session.
func (s *website) authenticated(p page) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who, ok := s.sessions.session(r)
		if !ok {
			showLocked(w, http.StatusUnauthorized, "")
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		p(w, pageRequest{r, who})
	}
}

// checkToken refuses a form that did not come from a page of this session.
func checkToken(p page) page {
	return func(w http.ResponseWriter, v pageRequest) {
		if err := v.ParseForm(); err != nil {
			var long *http.MaxBytesError
			if errors.As(err, &long) {
				http.Error(w, fmt.Sprintf("The form holds more than %d bytes.", maxForm),
					http.StatusRequestEntityTooLarge)
				return
			}
			http.Error(w, "The form cannot be read.", http.StatusBadRequest)
			return
		}
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // the action may take long
		if !v.session.hasToken(v.Request) {
			http.Error(w, "This form is not from a page of this session: nothing was done. Load the page anew.",
				http.StatusForbidden)
			return
		}
		p(w, v)
	}
}

// The login and logout pages.
type loginPages struct{ *website }

// enter exchanges a code for a session.
func (s loginPages) enter(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	cookie, err := s.sessions.login(r.PostFormValue("code"))
	if err != nil {
		showLocked(w, http.StatusForbidden, err.Error())
		return
	}
	http.SetCookie(w, cookie)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (s loginPages) show(w http.ResponseWriter, r *http.Request) {
	if _, ok := s.sessions.session(r); ok {
		// The code in the link is not used, so another browser can still use it.
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	showLocked(w, http.StatusOK, "")
}

func (s loginPages) leave(w http.ResponseWriter, v pageRequest) {
	s.sessions.logout(v.Request)
	showLocked(w, http.StatusOK, "You have left the console.")
}
