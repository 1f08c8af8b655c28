package console

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver/audit"
)

// TestPartsAreShort sends again only what has changed.
func TestPartsAreShort(t *testing.T) {
	s := serve(t, map[string]string{"a.txt": strings.Repeat("content\n", 100)})
	s.call("Read", `{"file_path":"a.txt"}`)
	req, err := http.NewRequest(http.MethodGet, s.URL()+"/part/calls", nil)
	if err != nil {
		t.Fatal(err)
	}
	for since, want := range map[string]bool{"": true, "0": true, "x": true,
		fmt.Sprint(s.console.recent(query{}, MaxCalls)[0].Version): false, "18446744073709551615": false} {
		req.Header.Set(headerSince, since)
		resp, err := s.web.Do(req)
		_, page := read(t, resp, err)
		if got := strings.Contains(page, "content"); got != want || !strings.Contains(page, `id="call-1"`) {
			t.Errorf("since %q the content is sent: %v, want %v", since, got, want)
		}
	}
}

// TestPagesAreBounded opens as many streams as there is room for.
func TestPagesAreBounded(t *testing.T) {
	s := serve(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for n := range MaxPages + 1 {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+"/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := s.web.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		want := http.StatusOK
		if n == MaxPages {
			want = http.StatusServiceUnavailable
		}
		if resp.StatusCode != want {
			t.Errorf("stream %d was answered by %d, want %d", n+1, resp.StatusCode, want)
		}
	}
}

// TestCallsAreBounded keeps neither more calls nor more of a result than it says.
func TestCallsAreBounded(t *testing.T) {
	s := serve(t, map[string]string{"long.txt": strings.Repeat("é long line\n", 4000)})
	for range MaxCalls + 5 {
		s.call("Glob", `{"pattern":"none"}`)
	}
	s.call(strings.Repeat("x", 1<<20), `{}`)
	s.call("Bash", `{"command":`+quoted("true "+strings.Repeat("x ", 20_000))+`}`)
	for _, one := range s.console.recent(query{}, MaxCalls)[:2] {
		if len(one.Record.Tool)+len(one.Record.Tool) > 2*maxName || len(one.Record.Command) > MaxResult {
			t.Errorf("%d bytes of the tool's name and %d of the command are kept", len(one.Record.Tool),
				len(one.Record.Command))
		}
	}
	if r := bounded(audit.Record{Reads: make([]string, 1000)}); len(r.Reads) != MaxFiles+1 ||
		r.Reads[MaxFiles] != "… and 980 more" {
		t.Errorf("of 1000 files are kept %q", r.Reads)
	}
	s.call("Read", `{"file_path":"long.txt"}`)
	all := s.console.recent(query{}, MaxCalls)
	if len(all) != MaxCalls {
		t.Errorf("%d calls are kept, want %d", len(all), MaxCalls)
	}
	if r := all[0]; len(r.Result) > MaxResult || r.Cut == 0 || r.State != stateDone {
		t.Errorf("%d bytes of the result are kept and %d not, its state is %q", len(r.Result), r.Cut, r.State)
	}
}

// TestCallStates follows calls on their way.
func TestCallStates(t *testing.T) {
	c := New(false)
	info := audit.Call{ID: 7, Tool: "Bash"}
	at := func(want string) {
		t.Helper()
		if got := c.recent(query{}, MaxCalls)[0].State; got != want {
			t.Errorf("the state is %q, want %q", got, want)
		}
	}
	for _, end := range []struct {
		verdict string
		failed  bool
		want    string
	}{{"allow", false, stateDone}, {"allow", true, stateFailed}, {"deny", true, stateRefused}, {"ask", true,
		stateAsked}, {"", true, stateFailed}} {
		changed := c.next().changed
		c.CallBegan(t.Context(), info)
		at(stateWaiting)
		<-changed
		c.CallPlanned(t.Context(), info, audit.Record{Command: "make"})
		at(stateRunning)
		c.CallEnded(t.Context(), info, audit.Record{Verdict: end.verdict}, builtin.Result{IsError: end.failed})
		at(end.want)
		info.ID++
	}
	c.CallEnded(t.Context(), audit.Call{ID: 1}, audit.Record{}, builtin.Result{}) // one that the view has not
	if n := len(c.recent(query{}, MaxCalls)); n != 5 {
		t.Errorf("%d calls are shown, want 5", n)
	}
}
