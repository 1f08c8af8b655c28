package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tailscale/hujson"
)

// TestUserFiles holds the places on every platform.
func TestUserFiles(t *testing.T) {
	msix := `C:\L\Packages\Claude_pzs8sxrjxfjjc`
	windows := map[string]string{"APPDATA": `C:\R`, "LOCALAPPDATA": `C:\L`}
	tests := []struct {
		client, os string
		vars       map[string]string
		exists     []string
		want       string
	}{
		{"claude-desktop", "linux", nil, nil, "/h/.config/Claude/claude_desktop_config.json"},
		{"claude-desktop", "darwin", nil, nil, "/h/Library/Application Support/Claude/claude_desktop_config.json"},
		{"claude-desktop", "windows", windows, nil, `C:\R\Claude\claude_desktop_config.json`},
		{"claude-desktop", "windows", windows, []string{msix}, msix + `\LocalCache\Roaming\Claude\claude_desktop_config.json`},
		{"claude-desktop", "windows", windows, []string{msix, `C:\R\Claude\claude_desktop_config.json`}, `C:\R\Claude\claude_desktop_config.json`},
		{"claude-code", "linux", nil, nil, "/h/.claude.json"},
		{"claude-code", "linux", map[string]string{"CLAUDE_CONFIG_DIR": "/c/"}, nil, "/c/.claude.json"},
		{"claude-code", "windows", nil, nil, `/h\.claude.json`},
		{"antigravity", "darwin", nil, nil, "/h/.gemini/config/mcp_config.json"},
		{"codex", "linux", nil, nil, "/h/.codex/config.toml"},
		{"codex", "darwin", map[string]string{"CODEX_HOME": "/c"}, nil, "/c/config.toml"},
		{"continue", "linux", nil, nil, "/h/.continue/mcpServers/toolhost.json"},
		{"continue", "linux", map[string]string{"CONTINUE_GLOBAL_DIR": "/c"}, nil, "/c/mcpServers/toolhost.json"},
		{"copilot", "linux", nil, nil, "/h/.copilot/mcp-config.json"},
		{"copilot", "linux", map[string]string{"COPILOT_HOME": "/c"}, nil, "/c/mcp-config.json"},
		{"cursor", "darwin", nil, nil, "/h/.cursor/mcp.json"},
		{"devin", "darwin", map[string]string{"XDG_CONFIG_HOME": "/x"}, nil, "/x/devin/mcp_config.json"},
		{"devin", "linux", nil, nil, "/h/.config/devin/mcp_config.json"},
		{"devin", "windows", windows, nil, `C:\R\devin\mcp_config.json`},
		{"gemini", "linux", nil, nil, "/h/.gemini/settings.json"},
		{"gemini", "linux", map[string]string{"GEMINI_CLI_HOME": "/g"}, nil, "/g/.gemini/settings.json"},
		{"goose", "linux", nil, nil, "/h/.config/goose/config.yaml"},
		{"goose", "darwin", nil, nil, "/h/.config/goose/config.yaml"},
		{"goose", "windows", windows, nil, `C:\R\Block\goose\config\config.yaml`},
		{"kilo", "linux", nil, nil, "/h/.config/kilo/kilo.json"},
		{"kilo", "linux", nil, []string{"/h/.config/kilo/kilo.jsonc"}, "/h/.config/kilo/kilo.jsonc"},
		{"kimi", "linux", nil, nil, "/h/.kimi-code/mcp.json"},
		{"librechat", "linux", nil, nil, ""},
		{"opencode", "linux", nil, nil, "/h/.config/opencode/opencode.json"},
		{"opencode", "linux", nil, []string{"/h/.config/opencode/opencode.jsonc"}, "/h/.config/opencode/opencode.jsonc"},
		{"opencode", "linux", map[string]string{"XDG_CONFIG_HOME": "/x"}, nil, "/x/opencode/opencode.json"},
		{"opencode", "linux", map[string]string{"OPENCODE_CONFIG": "/o.json"}, nil, "/o.json"},
		{"qwen", "linux", nil, nil, "/h/.qwen/settings.json"},
		{"vscode", "linux", nil, nil, "/h/.config/Code/User/mcp.json"},
		{"vscode", "darwin", nil, nil, "/h/Library/Application Support/Code/User/mcp.json"},
		{"vscode", "windows", windows, nil, `C:\R\Code\User\mcp.json`},
		{"crush", "linux", nil, nil, "/h/.config/crush/crush.json"},
		{"kiro", "linux", nil, nil, "/h/.kiro/settings/mcp.json"},
		{"windsurf", "linux", nil, nil, "/h/.codeium/windsurf/mcp_config.json"},
		{"zed", "linux", map[string]string{"XDG_CONFIG_HOME": "/x"}, nil, "/x/zed/settings.json"},
		{"zed", "darwin", nil, nil, "/h/.config/zed/settings.json"},
		{"zed", "windows", windows, nil, `C:\R\Zed\settings.json`},
	}
	for _, tt := range tests {
		c, err := Find(tt.client)
		if err != nil {
			t.Fatal(err)
		}
		e := Env{
			OS: tt.os, Home: "/h",
			Getenv: func(name string) string { return tt.vars[name] },
			Exists: func(path string) bool { return slices.Contains(tt.exists, path) },
			Glob: func(pattern string) []string {
				return slices.DeleteFunc(slices.Clone(tt.exists), func(path string) bool {
					return !strings.HasPrefix(path, strings.TrimSuffix(pattern, "*"))
				})
			},
		}
		if got := c.UserFile(e); got != tt.want {
			t.Errorf("%s on %s with %v and %v: got %s, want %s", tt.client, tt.os, tt.vars, tt.exists, got, tt.want)
		}
	}
}

func TestFind(t *testing.T) {
	for name, want := range map[string]string{"claude-desktop": "claude-desktop", "Claude Desktop": "claude-desktop",
		"VSCODE": "vscode", "vs code": "vscode", "gemini_cli": "gemini", "agy": "antigravity"} {
		if c, err := Find(name); err != nil || c.Name != want {
			t.Errorf("%s: %s, %v", name, c.Name, err)
		}
	}
	if c, err := Find("-"); err == nil {
		t.Errorf("a name without letters is %s", c.Name)
	}
	if _, err := Find("emacs"); err == nil || !strings.Contains(err.Error(), "windsurf") {
		t.Errorf("got %v", err)
	}
}

// TestSelf prefers the name that stays.
func TestSelf(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links need a privilege on Windows")
	}
	dir := t.TempDir()
	versioned, link := filepath.Join(dir, "Cellar-1.2", "toolhost"), filepath.Join(dir, "bin", "toolhost")
	for _, d := range []string{filepath.Dir(versioned), filepath.Dir(link)} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, versioned, "x", 0o755)
	write(t, filepath.Join(dir, "other"), "x", 0o755)
	if err := os.Symlink(versioned, link); err != nil {
		t.Fatal(err)
	}
	nothing := func(string) (string, error) { return "", errors.New("not found") }
	tests := []struct {
		name, called string
		look         func(string) (string, error)
		want         string
	}{
		{"on the PATH", "toolhost", func(string) (string, error) { return link, nil }, link},
		{"another one on the PATH", versioned, func(string) (string, error) { return filepath.Join(dir, "other"), nil }, versioned},
		{"called by its link", link, nothing, link},
		{"called by another name", "th", nothing, versioned},
	}
	for _, tt := range tests {
		if got, err := ownExecutable(versioned, tt.called, tt.look); err != nil || got != tt.want {
			t.Errorf("%s: %s, %v; want %s", tt.name, got, err, tt.want)
		}
	}
	for _, path := range []string{"/tmp/go-build123/b001/exe/toolhost", "/root/.cache/go-build/ab/abc-d/toolhost"} {
		if _, err := ownExecutable(path, "toolhost", nothing); !errors.Is(err, ErrTemporary) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if isGoRun("/home/me/go-builder/toolhost") {
		t.Error("a directory go-builder is refused")
	}
}

// TestLines are what a person adds by hand.
func TestLines(t *testing.T) {
	got, err := known("librechat").Lines(remote)
	want := `mcpServers:
  toolhost:
    type: "streamable-http"
    url: "http://127.0.0.1:8377/mcp"
    headers:
      Authorization: "Bearer ${TOOLHOST_TOKEN}"
    timeout: 600000
`
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

// TestNote: LibreChat reaches no private address that its file does not list.
func TestNote(t *testing.T) {
	for url, want := range map[string]string{
		"":                            "",
		"http://127.0.0.1:8377/mcp":   `["127.0.0.1:8377"]`,
		"http://[::1]:8377/mcp":       `["[::1]:8377"]`,
		"https://10.0.0.5/mcp":        `["10.0.0.5:443"]`,
		"http://tools/mcp":            `["tools:80"]`,
		"https://tools.example.com":   "",
		"https://192.0.2.1:8443/mcp":  "",
		"http://localhost:8377/other": `["localhost:8377"]`,
	} {
		got := known("librechat").Note(Server{URL: url})
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %s", url, got, want)
		}
	}
	if note := known("cursor").Note(remote); note != "" {
		t.Errorf("cursor: %q", note)
	}
}

// known is a client of the table.
func known(name string) Client {
	c, err := Find(name)
	if err != nil {
		panic(err)
	}
	return c
}

// TestTable: a member of the table that no field takes would be without effect.
func TestTable(t *testing.T) {
	plain, err := hujson.Standardize(table)
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(plain))
	dec.DisallowUnknownFields()
	var all []Client
	if err := dec.Decode(&all); err != nil {
		t.Fatal(err)
	}
	if !slices.IsSortedFunc(all, func(a, b Client) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the clients are not in the order of their names")
	}
	whose := map[string]string{}
	for _, c := range all {
		if c.Runs == nil {
			continue
		}
		for _, dir := range c.Runs.Layers {
			if other := whose[dir]; other != "" {
				t.Errorf("%s has the directory of %s: %s", c.Name, other, dir)
			}
			whose[dir] = c.Name
		}
		for _, path := range c.Runs.Shared {
			if !slices.ContainsFunc(c.Runs.Layers, func(dir string) bool { return strings.HasPrefix(path, dir+"/") }) {
				t.Errorf("%s shares %s, which is in none of its directories", c.Name, path)
			}
		}
		for path := range c.Runs.Copies {
			if !slices.Contains(c.Runs.Layers, path[:strings.LastIndex(path, "/")]) {
				t.Errorf("%s has a copy at %s, which lies in none of its directories itself", c.Name, path)
			}
		}
		for _, path := range c.Runs.Logins {
			if !slices.Contains(c.Runs.Shared, path) {
				t.Errorf("%s does not share its login %s", c.Name, path)
			}
		}
	}
	for _, c := range all {
		if c.ToolSearch != "" && c.ToolSearch != "off" {
			t.Errorf("%s: toolSearch is %q", c.Name, c.ToolSearch)
		}
	}
}
