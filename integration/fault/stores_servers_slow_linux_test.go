//go:build slow

package fault

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// otherServer is a server whose tools are those of the file tools next to it.
const otherServer = `#!/bin/bash
while read -r line; do
	[[ $line =~ \"id\":([0-9]+) ]] || continue
	case $line in
	*'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}' ;;
	*'"tools/list"'*) result=$(<"${0%/*}/tools") ;;
	*) result='{"content":[{"type":"text","text":"hello there"}]}' ;;
	esac
	printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "${BASH_REMATCH[1]}" "$result"
done
`

// otherTools is the list of its tools, with one description.
const otherTools = `{"tools":[{"name":"hello","description":"%s","inputSchema":{"type":"object"}}]}`

// A tokenServer is a server at a URL that wants a token, and the authorization server that gives it.
type tokenServer struct {
	*httptest.Server
	given atomic.Int32
}

// serverCalls use the stores of other servers and of hooks.
var serverCalls = []stateCall{{"mcp__s__hello", host.Args{}}, {"mcp__docs__hello", host.Args{}}, {"Grep", host.Args{"pattern": "number"}}}

// TestStateServers is TestStateFaults for what is kept of other servers, clients, consoles, far hosts and hooks. A
// command that says it has done something has done it, and one that fails has not.
func TestStateServers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting, and giving files away, take root")
	}
	for _, f := range stateFaults {
		t.Run(f.name, func(t *testing.T) {
			g := &ground{host.NewGround(t)}
			host.Must(t, os.MkdirAll(g.State, 0o700))
			host.Tmpfs(t, g.State, "size=128m,mode=700")
			t.Cleanup(func() { host.FarEnded(t, g.State) })
			web, cursor := g.useServers()
			given := web.given.Load()
			installed := host.Get(t, cursor)
			end, kept := f.begin(t, g), f.says == ""
			// The command that the refusal of docs names says the reason.
			f.says = strings.TrimPrefix(f.says+"|is withheld since|no host with a console|run `toolhost mcp login docs`", "|")
			if log := f.work(t, g, serverCalls); f.name == "another user" && !strings.Contains(log, "accepted until this host ends") {
				t.Errorf("the host does not say that it accepts what was withheld:\n%s", log)
			}
			for _, command := range []string{"stdio --console --root .", "mcp list", "mcp restart s", "mcp review s", "doctor --quick",
				"console", "status", "doctor --remote cmd:env"} {
				f.command(t, g, strings.Fields(command))
			}
			accepted := f.command(t, g, []string{"mcp", "accept", "s"})
			if now := web.given.Load(); kept && now != given {
				t.Errorf("%d tokens were given, and %d before: the login is lost", now, given)
			}
			loggedOut := f.command(t, g, []string{"mcp", "logout", "docs"})
			added := f.command(t, g, []string{"install", "zed", "--force", "--root", "."})
			removed := f.command(t, g, []string{"uninstall", "cursor"})
			end()
			given = web.given.Load()
			if out := g.toolhost("mcp", "review", "s"); accepted != strings.Contains(out, "nothing of s is withheld") {
				t.Errorf("accepted: %v, and the review says\n%s", accepted, out)
			}
			if out := g.toolhost("mcp", "call", "docs", "hello"); loggedOut == (web.given.Load() == given) {
				t.Errorf("logged out: %v, tokens given since: %d\n%s", loggedOut, web.given.Load()-given, out)
			}
			if out := g.toolhost("doctor", "--quick"); !strings.Contains(out, "no hook") {
				t.Errorf("the failure of the hook is not noted:\n%s", out)
			}
			if _, err := os.Stat(filepath.Join(g.Home, "config", "zed", "settings.json")); (err == nil) != added {
				t.Errorf("added to Zed: %v, %v", added, err)
			}
			if now, err := os.ReadFile(cursor); removed && string(now) != cursorBefore || !removed && string(now) != installed {
				t.Errorf("removed from Cursor: %v, %v\n%s", removed, err, now)
			}
			if !removed {
				g.toolhost("uninstall", "cursor")
			}
			if now := host.Get(t, cursor); now != cursorBefore {
				t.Errorf("of Cursor is left\n%s", now)
			}
		})
	}
}

// cursorBefore is the file of a client before toolhost is added.
const cursorBefore = "{\n\t// mine\n\t\"mcpServers\": {}\n}\n"

// useServers has the hosts of the ground serve a program, whose tool changes once it was accepted, and a server at a URL;
// a hook fails, the host that noticed it is killed, and toolhost is added to a client.
func (g *ground) useServers() (web *tokenServer, cursor string) {
	g.T.Helper()
	web = &tokenServer{}
	web.Server = httptest.NewServer(web)
	g.T.Cleanup(web.Close)
	program, tools := filepath.Join(g.Home, "servers", "s.sh"), filepath.Join(g.Home, "servers", "tools")
	host.MustWrite(g.T, tools, fmt.Sprintf(otherTools, "Greets."))
	host.MustWrite(g.T, program, otherServer)
	settings := host.Args{
		"mcpServers": map[string]any{
			"s": map[string]any{"command": "bash", "args": []string{program}},
			"docs": map[string]any{"type": "http", "url": web.URL + "/mcp",
				"oauth": map[string]any{"clientId": "c", "clientSecret": "${HOME}", "grant": "client_credentials"}},
		},
		"permissions": map[string]any{"allow": []string{"mcp__s", "mcp__docs"}},
		"hooks": map[string]any{"PostToolUse": []any{map[string]any{"matcher": "Grep",
			"hooks": []any{map[string]any{"type": "command", "command": "echo no hook >&2; exit 3"}}}}},
		"remote": map[string]any{"linger": "100ms"},
	}
	host.MustWrite(g.T, filepath.Join(g.Home, "config", "toolhost", "toolhost.json"), settings.String())
	cursor = filepath.Join(g.Home, ".cursor", "mcp.json")
	host.MustWrite(g.T, cursor, cursorBefore)
	g.toolhost("install", "cursor", "--root", ".")
	host.FarProgram(g.T, g.State)
	g.toolhost("doctor", "--remote", "cmd:env")
	g.Put("a.txt", "number 0\n")
	s := g.start(host.StdioModern, "--console")
	for _, c := range serverCalls {
		s.MustCall(c.tool, c.args)
	}
	host.MustWrite(g.T, tools, fmt.Sprintf(otherTools, "Greets, and more."))
	s.Kill()
	if out := g.toolhost("mcp", "list"); !strings.Contains(out, "withheld") {
		g.T.Errorf("the changed tool is not withheld:\n%s", out)
	}
	return web, cursor
}

func (s *tokenServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/prm":
		fmt.Fprintf(w, `{"resource":"%s/mcp","authorization_servers":["%[1]s"]}`, s.URL)
	case r.URL.Path == "/.well-known/oauth-authorization-server":
		fmt.Fprintf(w, `{"issuer":"%[1]s","authorization_endpoint":"%[1]s/authorize","token_endpoint":"%[1]s/token",
			"response_types_supported":["code"],"code_challenge_methods_supported":["S256"]}`, s.URL)
	case r.URL.Path == "/token":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"token%d","token_type":"Bearer","expires_in":3600}`, s.given.Add(1))
	case r.URL.Path != "/mcp" || r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer token"):
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata="%s/prm"`, s.URL))
		w.WriteHeader(http.StatusUnauthorized)
	default:
		answerOther(w, r.Body)
	}
}

// answerOther answers a message to the server at a URL.
func answerOther(w http.ResponseWriter, body io.Reader) {
	var m struct {
		ID     json.RawMessage
		Method string
	}
	if err := json.NewDecoder(body).Decode(&m); err != nil || m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	answer, ok := map[string]string{
		"initialize": `{"protocolVersion":"2025-06-18","serverInfo":{"name":"docs","version":"1"},"capabilities":{"tools":{}}}`,
		"tools/list": fmt.Sprintf(otherTools, "Greets over the web."), "tools/call": `{"content":[{"type":"text","text":"hello there"}]}`,
	}[m.Method]
	kind := "result"
	if !ok {
		kind, answer = "error", `{"code":-32601,"message":"no such method"}`
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%q:%s}`, m.ID, kind, answer)
}
