package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSetServer adds and removes servers; everything else in the file stays, and a refused change leaves it as it was.
func TestSetServer(t *testing.T) {
	for _, tt := range []struct {
		name, was, server, entry, want, err string
	}{
		{"no file", "", "s", `{"command":"c"}`, "{\"mcpServers\": {\"s\": {\"command\": \"c\"}}}\n", ""},
		{"comments", "{\n\t// mine\n\t\"permissions\": {\"deny\": [\"Read(x)\"]},\n}\n", "s", `{"command":"c"}`, "// mine\n\t\"permissions\": {\"deny\": [\"Read(x)\"]},\n\t\"mcpServers\":", ""},
		{"one more", `{"mcpServers": {"a": {"command": "x"}}}`, "b", `{"url":"u"}`, `"b": {"url": "u"}`, ""},
		{"there", `{"mcpServers": {"a": {"command": "x"}}}`, "a", `{"command":"c"}`, "", "has a server \"a\" already"},
		{"removed", `{"mcpServers": {"a": {"command": "x"}, "b": {}}, "z": 1}`, "a", "", `"b": {}`, ""},
		{"absent", `{"mcpServers": {"a": {}}}`, "b", "", "", "has no server \"b\""},
		{"not JSON", `{"mcpServers": `, "b", `{}`, "", "unexpected"},
		{"not an object", `{"mcpServers": []}`, "b", `{}`, "", "mcpServers is not an object"},
		{"a list", `[]`, "b", `{}`, "", "the file is not an object"},
	} {
		file := filepath.Join(t.TempDir(), "sub", "toolhost.json")
		if tt.was != "" {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(tt.was), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		err := SetServer(file, tt.server, []byte(tt.entry))
		now, _ := os.ReadFile(file)
		switch {
		case tt.err != "":
			if err == nil || !strings.Contains(err.Error(), tt.err) || string(now) != tt.was {
				t.Errorf("%s: %v: %s", tt.name, err, now)
			}
		case err != nil || !strings.Contains(string(now), tt.want) || tt.entry == "" &&
			strings.Contains(string(now), tt.server+`"`):
			t.Errorf("%s: %v: %s", tt.name, err, now)
		}
	}
}

// TestProjectEnablesServers: files of a workspace, trusted or not, do not have the servers of .mcp.json used, which have a trust of their own.
func TestProjectEnablesServers(t *testing.T) {
	for _, file := range []string{".toolhost/toolhost.json", ".toolhost/toolhost.local.json", ".claude/settings.json",
		".claude/settings.local.json"} {
		dir := t.TempDir()
		ws := filepath.Join(dir, "ws")
		for name, text := range map[string]string{
			filepath.Join("ws", file):       `{"enabledMcpjsonServers": ["a"], "enableAllProjectMcpServers": true, "disabledMcpjsonServers": ["b"]}`,
			"config/toolhost/toolhost.json": `{"enabledMcpjsonServers": ["u"]}`,
		} {
			name = filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, trust := range []bool{false, true} {
			s := Load(Config{Roots: []string{ws}, Home: dir, UserConfigDir: filepath.Join(dir, "config"),
				ManagedDir: filepath.Join(dir, "none"), TrustWorkspace: trust}).Servers
			if s.AllEnabled || len(s.Enabled) != 1 || s.Enabled[0].Text != "u" || len(s.Disabled) != 1 {
				t.Errorf("%s, trust %t: %+v", file, trust, s)
			}
		}
	}
}
