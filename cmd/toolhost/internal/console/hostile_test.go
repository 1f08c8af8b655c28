package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	g "maragu.dev/gomponents"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver"
)

// breakout leaves a text, an attribute in either quotes, and one without.
const breakout = `"><script>alert(1)</script>' onmouseover=x`

// TestEveryFieldIsEscaped puts breakout into every string that a page is made from, also those that are not a
// caller's today.
func TestEveryFieldIsEscaped(t *testing.T) {
	for _, full := range []bool{true, false} {
		for _, state := range []string{breakout, stateDone} {
			for name, page := range hostilePages(full, state) {
				checkPage(t, fmt.Sprintf("%s (full %v, state %.4s)", name, full, state), page)
			}
		}
	}
}

// hostilePages are all pages and parts, filled with breakout. Numbers and flags are set in full ones, calls and
// changes have this state.
func hostilePages(full bool, state string) map[string]g.Node {
	var live liveBody
	var task taskBody
	var history historyBody
	var change changeBody
	var rewind, done rewindBody
	var rules rulesBody
	var servers serversBody
	var log auditBody
	var agents agentsBody
	var values settingsBody
	for _, body := range []any{&agents, &values, &live, &task, &history, &change, &rewind, &done, &servers,
		&rules, &log} {
		fill(reflect.ValueOf(body).Elem(), full)
	}
	short := shortener("/ws")
	live.short, history.short, change.short, rewind.short, done.short, log.short = short, short, short, short, short, short
	live.Since, live.Calls[0].Version, live.Calls[0].State = 0, 1, state
	setState := func(c *builtin.Change) {
		if c.State = stateDone; state != stateDone {
			c.State = "open"
		}
		if !full {
			c.UndoneBy = ""
		}
	}
	setState(&history.Calls[0].Change)
	setState(&change.Call.Change)
	rewind.Left[0].Err, done.Done = errors.New(breakout), true
	pages := map[string]g.Node{"enter": loginPage(breakout), "link": new(awayPages).over(breakout, full)}
	for _, name := range []string{"questions", "sessions", "tasks", "calls"} {
		pages["part/"+name] = live.part(name)
	}
	for name, body := range map[string]content{
		"live": live, "task": task, "history": history, "change": change, "rewind": rewind, "rewound": done, "rules": rules, "servers": servers, "audit": log, "gone": notFound{}, "call": callBody{live, live.Calls[0], &change}, "agents": agents, "settings": values, "question": approvalBody{live, breakout},
	} {
		var f layout
		fill(reflect.ValueOf(&f).Elem(), full)
		f.Body = body
		pages[name] = f.document()
	}
	return pages
}

// fill sets every string of a value to breakout, and gives it one element of each list.
func fill(v reflect.Value, full bool) {
	switch {
	case !v.CanSet():
	case v.Type() == reflect.TypeFor[time.Time]():
		if full {
			v.Set(reflect.ValueOf(time.Now()))
		}
	case v.Type() == reflect.TypeFor[*builtin.Def](): // its schema holds schemas
		v.Set(reflect.ValueOf(&builtin.Def{Name: breakout}))
	case v.Kind() == reflect.String:
		v.SetString(breakout)
	case v.Kind() == reflect.Bool:
		v.SetBool(full)
	case v.CanInt() && full:
		v.SetInt(1)
	case v.CanUint() && full:
		v.SetUint(1)
	case v.CanFloat() && full:
		v.SetFloat(1)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), full)
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), full)
	case v.Kind() == reflect.Struct:
		for _, field := range v.Fields() {
			fill(field, full)
		}
	}
}

// own are the addresses that a page may name: of this console, and of places on the page.
var own = regexp.MustCompile(`^(#\w+|/|/[a-z.]+(/[^/]+)*)$`)

// checkPage looks for what is not ours in a page: by its text, and as a browser reads it.
func checkPage(t *testing.T, name string, page g.Node) {
	t.Helper()
	var b bytes.Buffer
	if err := page.Render(&b); err != nil {
		t.Fatal(err)
	}
	for _, raw := range []string{`"><script>`, "<script>", "' onmouseover"} {
		if strings.Contains(b.String(), raw) {
			t.Errorf("%s holds %q as it is:\n%s", name, raw, &b)
		}
	}
	if !strings.Contains(b.String(), "&lt;script&gt;alert(1)") {
		t.Errorf("%s does not show the text at all:\n%s", name, &b)
	}
	for z := html.NewTokenizer(&b); z.Next() != html.ErrorToken; {
		token := z.Token()
		if token.Data == "style" && token.Type == html.StartTagToken {
			t.Errorf("%s has a style of its own", name)
		}
		for _, a := range token.Attr {
			switch {
			case strings.HasPrefix(a.Key, "on"), a.Key == "style":
				t.Errorf("%s has the attribute %s on %s", name, a.Key, token.Data)
			case a.Key == "href" || a.Key == "src" || a.Key == "action":
				if !own.MatchString(a.Val) {
					t.Errorf("%s leads to %q", name, a.Val)
				}
			}
		}
	}
}

// TestNothingIsRaw keeps the one way around the escaping out of the pages.
func TestNothingIsRaw(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	raw := regexp.MustCompile(`\bg\.(Raw|NodeFunc)|html/template`)
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if found := raw.Find(source); found != nil && !strings.HasSuffix(name, "_test.go") {
			t.Errorf("%s has %s", name, found)
		}
	}
}

// TestAddress keeps what a page leads to below the console.
func TestAddress(t *testing.T) {
	for part, want := range map[string]string{
		"abc": "/history/abc", "//evil.example": "/history/%2F%2Fevil.example", "a?b#c": "/history/a%3Fb%23c", `"'<`: "/history/%22%27%3C",
	} {
		if got := address("history", part); got != want {
			t.Errorf("the address of %q is %q, want %q", part, got, want)
		}
	}
}

// TestEventsHoldNoText reads what the pages are sent while a hostile question waits.
func TestEventsHoldNoText(t *testing.T) {
	s := serve(t, nil)
	s.call(breakout, `{"command":`+quoted(breakout)+`}`)
	asked, cancel := context.WithCancel(context.Background())
	answered := make(chan struct{})
	changed := s.console.next().changed
	go func() {
		defer close(answered)
		s.console.Ask(asked, mcpserver.OperatorQuestion{Principal: breakout, Tool: breakout,
			Question: &mcpserver.Question{Input: []byte(quoted(breakout))}})
	}()
	defer func() { cancel(); <-answered }()
	<-changed
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.web.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	const want = "event: change\ndata: 1\n\n"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != want {
		t.Errorf("the pages are sent %q, %v, want %q", got, err, want)
	}
}
