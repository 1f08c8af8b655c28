package scripts

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/testenv"
)

// A village is a ground whose directories are workspaces.
type village struct {
	*host.Ground
	tokens map[string]string
}

// newVillage makes workspaces with a note each, and a token for the owner of each.
func newVillage(t *testing.T, names ...string) *village {
	testenv.NeedsNamespaces(t)
	v := &village{host.NewGround(t), map[string]string{}}
	host.MustWrite(t, filepath.Join(v.Home, "config", "toolhost", "toolhost.json"), `{"remote": {"linger": "100ms"}}`)
	for _, name := range names {
		v.Put(name+"/note", "note of "+name+"\n")
		out, err := v.Run("token", "add", name, "--root", v.Path(name))
		host.Must(t, err)
		v.tokens[name] = strings.TrimSpace(string(out))
	}
	t.Cleanup(func() {
		for _, pid := range v.hosts() {
			_ = syscall.Kill(pid, syscall.SIGTERM)
		}
		host.Eventually(t, func() string {
			if pids := v.hosts(); len(pids) > 0 {
				return fmt.Sprintf("hosts %v still run", pids)
			}
			return ""
		})
	})
	return v
}

// hosts returns the processes of the hosts of workspaces.
func (v *village) hosts() []int {
	return host.Running(v.T, func(line string) bool { return strings.Contains(line, "--apart="+v.WS) })
}

// front starts a server of the workspaces.
func (v *village) front(flags ...string) *host.Served {
	return v.Serve(nil, func(cmd *exec.Cmd) {
		cmd.Args = append([]string{host.Binary, "http", "--workspaces", v.WS, "--state-dir", v.State, "--listen",
			"127.0.0.1:0"}, flags...)
	})
}

// at is a server as a caller in a workspace.
func (v *village) at(s *host.Served, caller, name string) *host.Served {
	own := *s
	own.URL = strings.Replace(s.URL, "NAME", name, 1)
	if caller != "" {
		own.Token = v.tokens[caller]
	}
	return &own
}

// TestWorkspaces: each caller has the workspaces below its root, the owner has all, and nobody learns which others there
// are.
func TestWorkspaces(t *testing.T) {
	v := newVillage(t, "alice", "bob")
	v.Put("Twin/note", "one\n")
	v.Put("twin/note", "two\n")
	host.Must(t, os.Symlink(v.Path("bob"), v.Path("alias")))
	s := v.front("--deny", "Read(secret)")
	v.Put("alice/secret", "hidden\n")
	for _, tt := range []struct {
		caller, name, tool string
		args               host.Args
		says               string // "": there is no such workspace
	}{
		{"alice", "alice", "Read", host.Args{"file_path": "note"}, "note of alice"},
		{"bob", "bob", "Read", host.Args{"file_path": "note"}, "note of bob"},
		{"alice", "bob", "Read", host.Args{"file_path": "note"}, ""},
		{"bob", "alice", "Read", host.Args{"file_path": "note"}, ""},
		{"alice", "none", "Read", host.Args{"file_path": "note"}, ""},
		{"", "none", "Read", host.Args{"file_path": "note"}, ""},
		{"", "alice", "Read", host.Args{"file_path": "note"}, "note of alice"},
		{"", "bob", "Read", host.Args{"file_path": "note"}, "note of bob"},
		{"", "alias", "Read", host.Args{"file_path": "note"}, ""},
		{"", "twin", "Read", host.Args{"file_path": "note"}, ""},
		{"", "Twin", "Read", host.Args{"file_path": "note"}, ""},
		{"", "ALICE", "Read", host.Args{"file_path": "note"}, ""},
		{"", "%2e%2e", "Read", host.Args{"file_path": "note"}, ""},
		{"", "alice%2f..%2fbob", "Read", host.Args{"file_path": "note"}, ""},
		{"alice", "alice", "Read", host.Args{"file_path": "secret"}, "Read(secret)"},
		{"alice", "alice", "Read", host.Args{"file_path": "../bob/note"}, "belongs to other callers"},
		{"alice", "alice", "Bash", host.Args{"command": "cat note; cat ../bob/note || echo closed"}, "closed"},
		{"alice", "alice", "Bash", host.Args{"command": "ls " + v.WS}, "alice"},
		{"alice", "alice", "Bash", host.Args{"command": "echo x > ../bob/note || echo closed"}, "closed"},
	} {
		r := v.at(s, tt.caller, tt.name).MustCall(tt.tool, tt.args, nil)
		if tt.says == "" {
			if r.Status != http.StatusNotFound || r.Error == nil ||
				!strings.Contains(r.Error.Message, "no workspace of this name") {
				t.Errorf("%q in %s: %+v", tt.caller, tt.name, r)
			}
			continue
		}
		if text := r.Result.Text(); !strings.Contains(text, tt.says) || tt.caller == "alice" &&
			strings.Contains(text, "bob\n") {
			t.Errorf("%q in %s, %s %v: %d %s", tt.caller, tt.name, tt.tool, tt.args, r.Status, text)
		}
	}
	if got := host.Get(t, v.Path("bob/note")); got != "note of bob\n" {
		t.Errorf("another workspace has %q", got)
	}
	if n := len(v.hosts()); n != 2 {
		t.Errorf("%d hosts run for two workspaces", n)
	}
	if !strings.Contains(s.Stderr.String(), "differ only in case") {
		t.Errorf("the log does not say why a workspace is not served: %s", s.Stderr)
	}
	s.End()
}

// TestWorkspacesSessions: a legacy session is its caller's, in its workspace, at each server of the directory.
func TestWorkspacesSessions(t *testing.T) {
	v := newVillage(t, "alice", "bob")
	first, second := v.front(), v.front()
	ctx, cancel := host.Patient()
	defer cancel()
	own := v.at(first, "alice", "alice")
	c, err := client.HTTP(ctx, client.Legacy, own.URL, own.Token)
	host.Must(t, err)
	session := c.Session()
	for id, tt := range []struct {
		why          string
		server       *host.Served
		caller, name string
		status       int
	}{
		{"her own", first, "alice", "alice", http.StatusOK},
		{"her own at the other server", second, "alice", "alice", http.StatusOK},
		{"another's", first, "bob", "alice", http.StatusNotFound},
		{"another's in the own workspace", first, "bob", "bob", http.StatusNotFound},
		{"the owner with another's", second, "", "alice", http.StatusNotFound},
	} {
		s := v.at(tt.server, tt.caller, tt.name)
		for _, method := range []string{http.MethodPost, http.MethodGet} {
			if method == http.MethodGet && tt.status == http.StatusOK {
				continue // a stream without an end
			}
			r, err := http.NewRequestWithContext(ctx, method, s.URL, nil)
			host.Must(t, err)
			if method == http.MethodPost {
				r, err = http.NewRequestWithContext(ctx, method, s.URL,
					strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, 100+id)))
				host.Must(t, err)
			}
			r.Header = http.Header{
				"Authorization": {"Bearer " + s.Token}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
				"Mcp-Session-Id": {session}, "Mcp-Protocol-Version": {string(client.Legacy)},
			}
			response, err := s.HTTP.Do(r)
			host.Must(t, err)
			response.Body.Close()
			if response.StatusCode != tt.status {
				t.Errorf("%s %s: status %d, want %d", method, tt.why, response.StatusCode, tt.status)
			}
		}
	}
	host.Must(t, c.Close())
	first.End()
	second.End()
}

// TestWorkspacesQuestion: a caller with a root is asked by its own client. The answer counts at each server of the
// directory, and in no other workspace.
func TestWorkspacesQuestion(t *testing.T) {
	v := newVillage(t, "alice", "bob")
	host.MustWrite(t, filepath.Join(v.Home, "config", "toolhost", "toolhost.json"),
		`{"remote": {"linger": "100ms"}, "permissions": {"ask": ["Write"]}}`)
	first, second := v.front(), v.front()
	ctx, cancel := host.Patient()
	defer cancel()
	type result struct {
		client.Result
		RequestState  string
		InputRequests map[string]any
	}
	write := func(s *host.Served, caller string, answer map[string]any) (got result, err error) {
		t.Helper()
		at := v.at(s, caller, caller)
		c, err := client.HTTP(ctx, client.Modern, at.URL, at.Token)
		host.Must(t, err)
		c.Meta = map[string]any{"io.modelcontextprotocol/clientCapabilities": host.Args{"elicitation": host.Args{"form": host.Args{}}}}
		params := map[string]any{"name": "Write", "arguments": host.Args{"file_path": "asked", "content": "x"}}
		maps.Copy(params, answer)
		raw, err := c.Request(ctx, "tools/call", params)
		if err != nil {
			return got, err
		}
		return got, json.Unmarshal(raw, &got)
	}
	asked, err := write(first, "alice", nil)
	if err != nil || asked.RequestState == "" || len(asked.InputRequests) != 1 {
		t.Fatalf("alice was asked %+v, %v", asked, err)
	}
	answers := host.Args{}
	for question := range asked.InputRequests {
		answers[question] = host.Args{"action": "accept", "content": host.Args{"decision": "allow once"}}
	}
	for _, caller := range []string{"bob", "alice"} {
		got, err := write(second, caller, map[string]any{"requestState": asked.RequestState, "inputResponses": answers})
		refused := err != nil || got.IsError
		if _, err := os.Stat(v.Path(caller + "/asked")); refused != (caller == "bob") || (err != nil) != refused {
			t.Errorf("the answer of %s: %s, %v", caller, got.Text(), err)
		}
	}
	if r := v.at(first, "bob", "bob").MustCall("Write", host.Args{"file_path": "unasked", "content": "x"},
		nil); !r.Result.IsError {
		t.Errorf("a client that cannot ask: %s", r.Result.Text())
	}
	first.End()
	second.End()
}

// TestWorkspacesFlags: flags that say nothing there are refused, with what to do instead.
func TestWorkspacesFlags(t *testing.T) {
	g := host.NewGround(t)
	for _, tt := range []struct {
		flags []string
		says  string
	}{
		{[]string{"--workspaces", g.WS, "--console"}, "toolhost console opens"},
		{[]string{"--workspaces", g.WS, g.WS}, "leave the roots out"},
		{[]string{"--workspaces", g.Path("none")}, "no such file"},
		{[]string{"--workspaces", g.WS, "--oauth-issuer", "https://login.example.com", "--oauth-audience", "a"}, "toolhost token add"},
	} {
		cmd := exec.Command(host.Binary, append([]string{"http", "--state-dir", g.State}, tt.flags...)...)
		cmd.Env = host.CleanEnv(g.Home)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), tt.says) {
			t.Errorf("%v: %v %s", tt.flags, err, out)
		}
	}
}
