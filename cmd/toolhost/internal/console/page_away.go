package console

import (
	"crypto/hmac"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/toolhost/toolhost/mcpserver"
)

// The pages of a link to one question. They have their own listener, on which no other address of the console works.

// An awayPages serves the links to questions.
type awayPages struct {
	*website
	*away
	cross *http.CrossOriginProtection
}

// browserCookie is the cookie of a browser in which the code was typed.
const browserCookie = "__Host-toolhost-away"

func newAwayPages(s *website, a *away) (*awayPages, error) {
	p := &awayPages{website: s, away: a, cross: http.NewCrossOriginProtection()}
	return p, p.cross.AddTrustedOrigin(a.origin.Scheme + "://" + a.origin.Host)
}

func (s *awayPages) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /console.css", asset("console.css", "text/css; charset=utf-8"))
	mux.Handle("GET /favicon.svg", asset("favicon.svg", "image/svg+xml"))
	mux.HandleFunc("GET /q/{token}",
		func(w http.ResponseWriter, r *http.Request) { render(w, http.StatusOK, s.closed(r, "", false)) })
	mux.HandleFunc("POST /q/{token}", s.open)
	mux.HandleFunc("POST /q/{token}/answer", s.answer)
	return withDeadlines(s.checked(mux), headerTime, writeTime)
}

// checked sets the headers of each response. It refuses requests from pages of other sites, and those for another
// host name.
func (s *awayPages) checked(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		w.Header().Set("Referrer-Policy", "no-referrer") // the address contains the link
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src 'self'; form-action "+
			"'self'; "+
			"frame-ancestors 'none'; base-uri 'none'")
		if r.Host != s.origin.Host && !isLoopbackHost(r.Host) {
			http.Error(w, "This is not addressed as approvals.origin.", http.StatusMisdirectedRequest)
			return
		}
		if s.cross.Check(r) != nil {
			http.Error(w, "Another site's page asked for this: refused.", http.StatusForbidden)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		next.ServeHTTP(w, r)
	})
}

// open shows the question to the browser that is bound to the link.
func (s *awayPages) open(w http.ResponseWriter, r *http.Request) {
	id, err := s.question(r.PathValue("token"), time.Now())
	if err == nil && s.console.find(id) == nil {
		err = errLink
	}
	if err != nil {
		render(w, http.StatusNotFound, s.over(err.Error(), true))
		return
	}
	browser, known := s.browser(r)
	if !known {
		if code := r.PostFormValue("code"); !s.isCode(code) {
			said := ""
			if code != "" {
				s.console.tried(id)
				said = "This is not the code."
			}
			render(w, http.StatusUnauthorized, s.closed(r, said, true))
			return
		}
		browser = s.newBrowser(time.Now())
	}
	if err := s.console.bind(id, browser); err != nil {
		render(w, http.StatusConflict, s.over(err.Error(), true))
		return
	}
	if !known {
		http.SetCookie(w, &http.Cookie{
			Name: browserCookie, Value: browser, Path: "/", MaxAge: int(browserAge.Seconds()),
			Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		})
	}
	s.show(w, r, http.StatusOK, id, browser, "")
}

// browser returns the value of the browser's cookie, and whether the code was typed in that browser.
func (s *awayPages) browser(r *http.Request) (value string, known bool) {
	cookie, err := r.Cookie(browserCookie)
	if err != nil {
		return "", false
	}
	return cookie.Value, s.isBrowser(cookie.Value, time.Now())
}

// answer records the decision.
func (s *awayPages) answer(w http.ResponseWriter, r *http.Request) {
	token := r.PathValue("token")
	id, err := s.question(token, time.Now())
	browser, known := s.browser(r)
	switch {
	case err != nil:
	case !known || !hmac.Equal([]byte(r.PostFormValue("token")), []byte(s.formToken(token, browser))):
		err = errors.New("nothing was decided: this form is not from a page of this browser")
	default:
		err = s.console.bind(id, browser)
	}
	if err != nil {
		render(w, http.StatusConflict, s.over(err.Error(), true))
		return
	}
	form := r.PostForm
	form.Set("question", strconv.FormatUint(id, 10)) // the link determines the question, not the form
	if form.Get("decision") == mcpserver.AlwaysAllow {
		form.Set("decision", "")
	}
	said, err := approvalPages{s.website}.decide(pageRequest{Request: r})
	if err != nil && s.console.find(id) != nil {
		s.show(w, r, http.StatusConflict, id, browser, err.Error())
		return
	}
	if err != nil {
		render(w, http.StatusConflict, s.over(err.Error(), true))
		return
	}
	render(w, http.StatusOK, s.over(said, false))
}

// show renders the question.
func (s *awayPages) show(w http.ResponseWriter, r *http.Request, status int, id uint64, browser, said string) {
	one, ok := s.console.one(id)
	if !ok {
		render(w, http.StatusNotFound, s.over(errLink.Error(), true))
		return
	}
	asked := *one.Asked.Question
	asked.Always, asked.NoAlways = nil, "this page allows one call"
	one.Asked.Question = &asked
	token := r.PathValue("token")
	b := liveBody{Token: s.formToken(token, browser), answersTo: address("q", token, "answer"), short: s.short}
	if err := s.operator.MayAnswer(); err != nil {
		b.Closed = err.Error()
	}
	render(w, status, s.page("An agent asks", said, true,
		h.H2(h.Class("unseen"), g.Text("Waiting for you")), b.warning(), h.Ol(h.Class("questions"),
			b.question(one, false))))
}

// closed returns the page of a link for a browser that is not known. It is the same for all questions, and shows
// nothing of them.
func (s *awayPages) closed(r *http.Request, said string, asks bool) g.Node {
	lead := "A call of an agent may wait for your answer."
	if asks {
		lead = "This browser is new here. Type the code that the console shows under Settings, once."
	}
	return s.page("An agent asks", said, true,
		h.P(g.Text(lead)),
		h.Form(h.Method("post"), h.Action(address("q", r.PathValue("token"))),
			g.If(asks, g.Group{
				h.Label(h.For("code"), g.Text("Code")),
				h.Input(h.Class("code"), keepInput("code", ""), g.Attr("autocapitalize", "characters"),
					h.Placeholder("ABCD-EFGH")),
			}),
			h.P(button("main", "Show the question")),
		),
	)
}

// over returns the page of a link that opens no question, or no longer does.
func (s *awayPages) over(said string, failed bool) g.Node {
	return s.page("Question", sentence(said), failed, meta(g.Text("You can close this page.")))
}

// page returns a page with the frame of these pages.
func (s *awayPages) page(title, said string, failed bool, body ...g.Node) g.Node {
	class := "say"
	if failed {
		class += " bad"
	}
	return scripted(title, nil, h.Header(h.Class("top"), h.P(h.Class("brand"), g.Text("toolhost"))),
		h.Main(h.Class("away"), h.H1(g.Text(title)),
			g.If(said != "", h.P(h.Class(class), h.Role("status"), text(said))), g.Group(body)))
}

// listenAway opens the listener for links, and starts to announce questions.
func (s *Server) listenAway(cfg Config) error {
	set := s.operator.Settings().Approvals
	a, err := newAway(set, cfg.StateDir, cfg.Log)
	if a == nil || err != nil {
		return err
	}
	pages, err := newAwayPages(s.website, a)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", set.Listen)
	if err != nil {
		return fmt.Errorf("approvals.listen: %w; another host may announce its questions there", err)
	}
	s.host.KeepPort(l.Addr())
	s.away, s.awayPages = l, pages.routes()
	s.console.mu.Lock()
	defer s.console.mu.Unlock()
	s.console.away = a
	return nil
}
