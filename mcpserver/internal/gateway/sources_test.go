package gateway

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/guard/settings"
)

// TestMatchesURL: a pattern for addresses cannot be met by the path of another host, nor evaded by a spelling of the host.
func TestMatchesURL(t *testing.T) {
	for _, tt := range []struct {
		pattern, text string
		want          bool
	}{
		{"https://*.good.example/*", "https://mcp.good.example/mcp", true}, {"https://*.good.example/*", "https://evil.example/x.good.example/", false},
		{"https://*.good.example/*", "https://evil.example/?.good.example/", false}, {"https://*.good.example/*", "https://a.good.example@evil.example/", false},
		{"https://*.good.example/*", "https://evil.example#.good.example/", false}, {"https://*.good.example/*", "http://a.good.example/", false},
		{"https://evil.example/*", "https://EVIL.example/x", true}, {"https://evil.example/*", "https://evil.example.:443/x", true},
		{"https://Evil.example/*", "HTTPS://evil.example", true}, {"https://evil.example/*", "https://u@evil.example/", true}, {"*evil*", "https://evil.example/x", true},
		{"*", "https://a.example:8443/x?y", true}, {"https://*", "https://a.example:8443/x", true}, {"https://a.example/mcp", "https://a.example/mcp", true},
		{"https://a.example/mcp", "https://a.example/mcp/other", false}, {"https://a.example/*", "https://a.example:8443/", false}, {"http://localhost:*/*", "http://localhost:3000/mcp", true},
		{"http://localhost:*/*", "http://localhost/mcp", true}, {"http://localhost:*/*", "http://localhost:3000", true},
	} {
		if got := matchesURL(tt.pattern, tt.text); got != tt.want {
			t.Errorf("%s, %s: %t", tt.pattern, tt.text, got)
		}
	}
}

// TestSources: which servers of which files are used, and why others are not.
func TestSources(t *testing.T) {
	const user, root, mcp, claude, managed = "config/toolhost/toolhost.json", "ws/.toolhost/toolhost.json", "ws/.mcp.json", ".claude.json", "managed/managed-mcp.json"
	tests := []struct {
		name  string
		files map[string]string
		trust bool
		want  string // name=trust, or name!part of the reason
		wrong string // part of a problem
	}{
		{"user", map[string]string{user: `{"mcpServers":{"a":{"command":"x"},"b":{"url":"https://b.example/mcp"}}}`}, false, "a=user; b=user", ""},
		{"project without trust", map[string]string{root: `{"mcpServers":{"a":{"command":"x"}}}`}, false, "a!toolhost trust", ""},
		{"project with trust", map[string]string{root: `{"mcpServers":{"a":{"command":"x"}}}`}, true, "a=project", ""},
		{"the user's wins", map[string]string{user: `{"mcpServers":{"a":{"command":"x"}}}`, root: `{"mcpServers":{"a":{"command":"y"}}}`}, true, "a=user", "has one with the same name"},
		{"not imported", map[string]string{mcp: `{"mcpServers":{"a":{"command":"x"}}}`, claude: `{"mcpServers":{"b":{"command":"x"}}}`}, true, "", ""},
		{"imported", map[string]string{
			user: `{"gateway":{"import":["project","user","local"]}}`, mcp: `{"mcpServers":{"a":{"command":"x"}}}`,
			claude: `{"mcpServers":{"b":{"command":"x"}},"projects":{"ROOT":{"mcpServers":{"c":{"command":"x"}}}}}`},
			true, "a=project; b=user; c=user", ""},
		{"imported without trust", map[string]string{user: `{"gateway":{"import":["project"]}}`, mcp: `{"mcpServers":{"a":{"command":"x"}}}`}, false, "a!not trusted", ""},
		{"a project cannot import", map[string]string{root: `{"gateway":{"import":["project","user"]}}`, claude: `{"mcpServers":{"b":{"command":"x"}}}`}, true, "", ""},
		{"enabled by the user", map[string]string{user: `{"gateway":{"import":["project"]},"enabledMcpjsonServers":["a"]}`, mcp: `{"mcpServers":{"a":{"command":"x"},"b":{"command":"x"}}}`}, false, "a=project; b!not trusted", ""},
		{"enabled by the project", map[string]string{user: `{"gateway":{"import":["project"]}}`, "ws/.claude/settings.json": `{"enableAllProjectMcpServers":true}`, mcp: `{"mcpServers":{"a":{"command":"x"}}}`}, false, "a!not trusted", ""},
		{"disabled by the project", map[string]string{user: `{"gateway":{"import":["project"]}}`, "ws/.claude/settings.json": `{"disabledMcpjsonServers":["a"]}`, mcp: `{"mcpServers":{"a":{"command":"x"}}}`}, true, "a!disabledMcpjsonServers", ""},
		{"a broken .mcp.json", map[string]string{user: `{"gateway":{"import":["project"]},"mcpServers":{"u":{"command":"x"}}}`, mcp: `{"mcpServers":`}, true, "u=user", ""},
		{"denied", map[string]string{user: `{"mcpServers":{"a":{"command":"x","args":["1"]},"b":{"url":"https://b.example/mcp"},"c":{"command":"y"}}, "deniedMcpServers":[{"serverCommand":["x","1"]},{"serverUrl":"https://*.example/*"}]}`}, false, "a!denied; b!denied; c=user", ""},
		{"denied behind a variable", map[string]string{user: `{"mcpServers":{"a":{"command":"${X_NONE:-x}","args":["${X_NONE:-1}"]},"b":{"url":"${X_NONE:-https://B.EXAMPLE:443/mcp}"},"c":{"url":"${X_RAW}"}}, "deniedMcpServers":[{"serverCommand":["x","1"]},{"serverUrl":"https://*.example/*"},{"serverUrl":"${X_RAW}"}]}`}, false, "a!denied; b!denied; c!denied", ""},
		{"allowed behind a variable", map[string]string{user: `{"mcpServers":{"a":{"command":"${X_NONE:-x}"},"b":{"command":"${X_NONE:-y}"}}, "allowedMcpServers":[{"serverCommand":["x"]},{"serverCommand":["${X_NONE:-y}"]}]}`}, false, "a=user; b!allowedMcpServers", ""},
		{"allowed", map[string]string{user: `{"mcpServers":{"a":{"command":"x"},"b":{"command":"y"}}, "allowedMcpServers":[{"serverName":"a"}]}`}, false, "a=user; b!allowedMcpServers", ""},
		{"none allowed", map[string]string{user: `{"mcpServers":{"a":{"command":"x"}}, "allowedMcpServers":[]}`}, false, "a!allowedMcpServers", ""},
		{"a project cannot widen what is allowed", map[string]string{
			user: `{"mcpServers":{"a":{"command":"x"}}, "allowedMcpServers":[]}`,
			root: `{"allowedMcpServers":[{"serverName":"a"}]}`}, true, "a!allowedMcpServers", ""},
		{"managed alone", map[string]string{managed: `{"mcpServers":{"m":{"command":"x"}}}`, user: `{"mcpServers":{"a":{"command":"x"}}}`}, false, "m=managed", ""},
		{"managed that is broken", map[string]string{managed: `{`, user: `{"mcpServers":{"a":{"command":"x"}}}`}, false, "", "left out"},
		{"names", map[string]string{user: `{"mcpServers":{"a b":{"command":"x"},"a__b":{"command":"x"},"_a":{"command":"x"},"toolhost":{"command":"x"},"é":{"command":"x"}}}`}, false, "_!cannot be named; _a!cannot be named; a__b!cannot be named; a_b=user; toolhost!cannot be named", ""},
		{"two that become one", map[string]string{user: `{"mcpServers":{"a b":{"command":"x"},"a.b":{"command":"x"}}}`}, false, "a_b!two servers", ""},
		{"sampling", map[string]string{user: `{"mcpServers":{"a":{"command":"x","sampling":true}}}`}, false, "a=user", "has sampling, which is not supported"},
		{"an unknown key", map[string]string{user: `{"mcpServers":{"a":{"command":"x","arg":["y"]}}}`}, false, "a=user", `did you mean "args"?`},
		{"a wrong type", map[string]string{user: `{"mcpServers":{"a":{"command":"x","args":"y"},"b":{"type":"ws","url":"x"},"c":{}}}`}, false, "a!cannot decode; b!its type is; c!no \"command\"", ""},
		{"no object", map[string]string{user: `{"mcpServers":{"a":"x"}}`}, false, "a!it is of the kind string: an object is expected", ""},
		{"a member of a wrong type", map[string]string{user: `{"mcpServers":{"a":{"sampling":{}}}}`}, false, `a!"sampling" is of the kind object`, ""},
		{"this program", map[string]string{user: fmt.Sprintf(`{"mcpServers":{"a":{"command":%q}}}`, os.Args[0])}, false, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			ws := filepath.Join(dir, "ws")
			if err := os.MkdirAll(ws, 0o700); err != nil {
				t.Fatal(err)
			}
			for name, text := range tt.files {
				file := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "ROOT", ws)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			set := settings.Load(settings.Config{
				Roots: []string{ws}, Home: dir, UserConfigDir: filepath.Join(dir, "config"),
				ManagedDir: filepath.Join(dir, "none"), TrustWorkspace: tt.trust,
			})
			entries, problems := Sources{Settings: set, Roots: []string{ws}, Home: dir,
				Managed: []string{filepath.Join(dir, "managed")}}.Load()
			slices.SortFunc(entries, func(a, b *Entry) int { return strings.Compare(a.Name, b.Name) })
			var got []string
			for _, e := range entries {
				if e.Refused == "" {
					got = append(got, e.Name+"="+e.Trust.String())
				} else {
					got = append(got, e.Name+"!"+e.Refused)
				}
			}
			matches := func(got, want string) bool {
				name, reason, refused := strings.Cut(want, "!")
				return got == want || refused && strings.HasPrefix(got, name+"!") && strings.Contains(got, reason)
			}
			want := strings.Split(tt.want, "; ")
			if tt.want == "" {
				want = nil
			}
			if !slices.EqualFunc(got, want, matches) {
				t.Errorf("got %q\nwant %q", got, want)
			}
			if !strings.Contains(strings.Join(problems, "\n"), tt.wrong) {
				t.Errorf("problems %q, want %q", problems, tt.wrong)
			}
		})
	}
}

// Problems of the configuration are logged where servers are used, and once.
func TestProblemsAreReportedOnUse(t *testing.T) {
	var log bytes.Buffer
	g := Open(Config{
		Servers: func() ([]*Entry, []string) { return nil, []string{"the server a has the unknown key"} },
		Changed: func(*Gateway, bool) {}, Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	defer g.Close()
	if log.Len() > 0 {
		t.Errorf("before a server is used: %s", log.String())
	}
	for range 2 {
		g.TryAll(t.Context())
	}
	if n := strings.Count(log.String(), "unknown key"); n != 1 {
		t.Errorf("logged %d times: %s", n, log.String())
	}
}
