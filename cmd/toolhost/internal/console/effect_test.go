package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/mcpserver"
	"github.com/toolhost/toolhost/mcpserver/audit"
	"github.com/toolhost/toolhost/mcpserver/auth"
)

// serveDownload serves a host with the tool download under the given permissions.
func serveDownload(t *testing.T, permissions string, change ...func(*mcpserver.Config)) *served {
	t.Helper()
	tool, err := builtin.Define(download)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, nil, append(change, func(c *mcpserver.Config) {
		file := filepath.Join(t.TempDir(), "settings.json")
		if err := os.WriteFile(file, []byte(`{"permissions":{`+permissions+`},"sandbox":{"enabled":false}}`),
			0o600); err != nil {
			t.Fatal(err)
		}
		c.CustomTools, c.Settings, c.AuditLog = []*builtin.Def{tool}, []string{file}, filepath.Join(t.TempDir(),
			"audit.jsonl")
	})...)
}

// TestNewKindOfEffect adds a tool with a kind of effect of its own, and looks at whether the host judges, records and shows it like its own.
func TestNewKindOfEffect(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		fmt.Fprint(w, "the page")
	}))
	defer web.Close()
	args := fmt.Sprintf(`{"url":%q}`, web.URL)
	for _, tt := range []struct{ mode, rules, verdict, rule string }{
		{settings.ModeDefault, ``, "ask", "mode default"},
		{settings.ModePlan, ``, "ask", "mode plan"},
		{settings.ModeDontAsk, ``, "deny", "mode dontAsk"},
		{settings.ModeBypass, ``, "allow", "mode bypassPermissions"},
		{settings.ModeDefault, `"allow":["Download(domain:127.0.0.1)"]`, "allow", "Download(domain:127.0.0.1)"},
		{settings.ModeDontAsk, `"allow":["Download"]`, "allow", "Download"},
		{settings.ModeDefault, `"allow":["Download(domain:example.org)"]`, "ask", "mode default"},
		{settings.ModeBypass, `"ask":["Download(domain:127.0.0.1)"]`, "ask", "Download(domain:127.0.0.1)"},
		{settings.ModeDontAsk, `"ask":["Download(domain:127.0.0.1)"]`, "deny", "Download(domain:127.0.0.1)"},
		{settings.ModeBypass, `"deny":["Download(domain:127.0.0.1)"],"allow":["Download"]`, "deny", "Download(domain:127.0.0.1)"},
		{settings.ModeBypass, `"deny":["Download"]`, "deny", "Download"},
	} {
		t.Run(tt.mode+" "+tt.rules, func(t *testing.T) {
			s := serveDownload(t, strings.TrimSuffix(fmt.Sprintf(`"defaultMode":%q,%s`, tt.mode, tt.rules), ","))
			v, err := s.operator.Check(t.Context(), mcpserver.LocalPrincipal, "Download", json.RawMessage(args))
			if err != nil || v.Action.String() != tt.verdict || v.Rule != tt.rule {
				t.Errorf("check: %v by %s (%v), want %s by %s", v.Action, v.Rule, err, tt.verdict, tt.rule)
			}
			reply := s.host.Call(t.Context(), s.host.AdmitNamed("test"),
				mcpserver.Request{Tool: "Download", Args: json.RawMessage(args), Client: builtin.Client{CanAsk: true}})
			if fetched := reply.Text == "the page"; fetched != (tt.verdict == "allow") {
				t.Errorf("the call answered %q", reply.Text)
			}
			if (reply.Question != nil) != (tt.verdict == "ask") {
				t.Errorf("question: %+v", reply.Question)
			}
			_, page := s.get(t, "/")
			if err := s.host.Close(); err != nil { // writes what waits for an answer
				t.Fatal(err)
			}
			r := lastRecord(t, s.operator.AuditPath())
			if r.Verdict != tt.verdict || r.Rule != tt.rule || len(r.Effects) != 1 ||
				r.Effects[0] != "download "+web.URL {
				t.Errorf("recorded: %+v", r)
			}
			if !strings.Contains(page, "download "+web.URL) {
				t.Errorf("the page does not show the effect:\n%s", page)
			}
		})
	}
}

func lastRecord(t *testing.T, path string) (r audit.Record) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestNewKindIsAsked looks at the question about a new kind of effect, and at what "always allow" remembers.
func TestNewKindIsAsked(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		fmt.Fprint(w, "the page")
	}))
	defer web.Close()
	s := serveDownload(t, `"defaultMode":"default"`)
	args := json.RawMessage(fmt.Sprintf(`{"url":%q}`, web.URL))
	reply := s.host.Call(t.Context(), s.host.AdmitNamed("test"),
		mcpserver.Request{Tool: "Download", Args: args, Client: builtin.Client{CanAsk: true}})
	q := reply.Question
	if q == nil || !strings.Contains(q.Message, "download "+web.URL) || len(q.Always) != 1 ||
		q.Always[0] != "Download(domain:127.0.0.1)" {
		t.Fatalf("question: %+v", q)
	}
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan mcpserver.Answer, 1)
	go func() {
		asked <- s.console.Ask(ctx, mcpserver.OperatorQuestion{Principal: mcpserver.LocalPrincipal, Tool: "Download",
			Question: q})
	}()
	for page := ""; !strings.Contains(page, "Download(domain:127.0.0.1)") ||
		!strings.Contains(page, "download "+web.URL); _, page = s.get(t, "/") {
		if time.Sleep(time.Millisecond); t.Context().Err() != nil {
			t.Fatal("the console does not show the question")
		}
	}
	cancel()
	<-asked
	answer := &mcpserver.Answer{State: q.State, Decision: mcpserver.AlwaysAllow, By: mcpserver.ByClient}
	reply = s.host.Call(t.Context(), s.host.AdmitNamed("test"),
		mcpserver.Request{Tool: "Download", Args: args, Client: builtin.Client{CanAsk: true}, Answer: answer})
	if reply.Text != "the page" {
		t.Errorf("the allowed call answered %q", reply.Text)
	}
	v, err := s.operator.Check(t.Context(), mcpserver.LocalPrincipal, "Download", args)
	if err != nil || v.Action != guard.Allow || v.Rule != "Download(domain:127.0.0.1)" {
		t.Errorf("afterwards: %v by %s (%v)", v.Action, v.Rule, err)
	}
}

// TestNewKindNeedsItsPermission calls the tool with a credential that lacks what its effect needs.
func TestNewKindNeedsItsPermission(t *testing.T) {
	s := serveDownload(t, `"defaultMode":"bypassPermissions"`)
	a := s.host.Admit(auth.Identity{Principal: "p", Rights: auth.Write}, nil, "", true)
	reply := s.host.Call(t.Context(), a, mcpserver.Request{Tool: "Download", Args: json.RawMessage(`{"url":"http://127.0.0.1:1/"}`)})
	if !reply.IsError || !strings.Contains(reply.Text, "needs the right read") {
		t.Errorf("the call answered %q", reply.Text)
	}
}
