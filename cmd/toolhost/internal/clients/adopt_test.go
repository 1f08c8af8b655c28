package clients

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAdopt: the other servers of a client move behind the host, and come back: to the byte if nothing else has changed the file, and each by
// its name otherwise.
func TestAdopt(t *testing.T) {
	const was = `{
  "theme": "dark",
  "mcpServers": {
    "memory": {"command": "npx", "args": ["-y", "memory"], "env": {"TOKEN": "${env:T}"}, "autoApprove": ["x"]},
    "docs": {"type": "http", "url": "https://docs.example/mcp", "headers": {"A": "b"}},
    "off": {"command": "x", "disabled": true},
    "asks": {"command": "x", "args": ["${input:key}"]},
    "odd": {"command": "x", "envFile": ".env"}
  }
}
`
	for _, changed := range []bool{false, true} {
		c, err := Find("cursor")
		if err != nil {
			t.Fatal(err)
		}
		r := scratch(t, c)
		file, into := c.UserFile(r.Env), filepath.Join(r.Env.Home, "config", "toolhost.json")
		write(t, file, was, 0o600)
		if _, err := c.Install(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		dry := r
		dry.DryRun = true
		if _, _, err := c.Adopt(t.Context(), dry, into); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(into); err == nil {
			t.Fatal("a dry run wrote")
		}
		for range 2 { // the second time there is nothing left to move
			a, _, err := c.Adopt(t.Context(), r, into)
			if err != nil || len(a.Entries) != 2 || len(a.Left) != 3 {
				t.Fatalf("moved %v, left %v: %v", a.Entries, a.Left, err)
			}
		}
		now, moved := read(t, file), read(t, into)
		if strings.Contains(now, "memory") || strings.Contains(now, "docs") || !strings.Contains(now, `"off"`) ||
			!strings.Contains(now, "toolhost") {
			t.Errorf("the client has %s", now)
		}
		for _, want := range []string{`"memory":`, `"-y", "memory"`, `"TOKEN": "${T}"`, `"https://docs.example/mcp"`,
			`"A": "b"`} {
			if !strings.Contains(moved, want) {
				t.Errorf("toolhost has no %s: %s", want, moved)
			}
		}
		if changed {
			write(t, file, strings.Replace(now, "dark", "light", 1), 0o600)
		}
		if _, err := c.Uninstall(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.GiveBack(t.Context(), r, into); err != nil {
			t.Fatal(err)
		}
		now = read(t, file)
		if !changed && now != was {
			t.Errorf("not what it was: %s", now)
		}
		if strings.Contains(now, "toolhost") || !strings.Contains(now, `"${env:T}"`) ||
			!strings.Contains(now, "autoApprove") || !strings.Contains(now, "docs.example") {
			t.Errorf("changed %t: given back: %s", changed, now)
		}
		if moved := read(t, into); strings.Contains(moved, "memory") || strings.Contains(moved, "docs") {
			t.Errorf("toolhost still has %s", moved)
		}
		if _, err := os.Stat(adoption(c, r)); err == nil {
			t.Error("the record is still there")
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestPlaceholders: what a client replaces in an entry is what a host replaces, or the entry stays.
func TestPlaceholders(t *testing.T) {
	tests := []struct{ client, entry, want string }{ // want is the entry, or a part of the error
		{"opencode", `{"type":"local","command":["npx","x"],"environment":{"K":"{env:MY_KEY}"}}`, `{"args":["x"],"command":"npx","env":{"K":"${MY_KEY}"}}`},
		{"opencode", `{"type":"remote","url":"https://{env:HOST}/mcp","headers":{"A":"Bearer {env:A}-{env:B}"}}`, `{"headers":{"A":"Bearer ${A}-${B}"},"type":"http","url":"https://${HOST}/mcp"}`},
		{"opencode", `{"command":["npx","{file:~/.key}"]}`, "{file:~/.key}, which only this client replaces"},
		{"opencode", `{"command":["npx"],"environment":{"K":"{file:./key.txt}"}}`, "{file:./key.txt}"},
		{"kilo", `{"command":["npx"],"environment":{"K":"{env:a-b}"}}`, "{env:a-b}"},
		{"gemini", `{"command":"npx","args":["--key=$MY_KEY"],"env":{"K":"$MY_KEY","L":"${MY_KEY}","M":"a$B$C"}}`, `{"args":["--key=${MY_KEY}"],"command":"npx","env":{"K":"${MY_KEY}","L":"${MY_KEY}","M":"a${B}${C}"}}`},
		{"gemini", `{"httpUrl":"https://x/$PATH_PART","headers":{"A":"$TOKEN"}}`, `{"headers":{"A":"${TOKEN}"},"type":"http","url":"https://x/${PATH_PART}"}`},
		{"qwen", `{"command":"$HOME/bin/x","cwd":"$HOME"}`, `{"command":"${HOME}/bin/x","cwd":"${HOME}"}`},
		{"crush", `{"command":"npx","env":{"K":"$(pass show key)"}}`, "$(pass show key)"},
		{"crush", `{"command":"npx","env":{"K":"$KEY"}}`, `{"command":"npx","env":{"K":"${KEY}"}}`},
		{"cursor", `{"command":"${userHome}/x","args":["${env:A}${/}b"],"env":{"P":"pa$word"}}`, `{"args":["${A}/b"],"command":"HOME/x","env":{"P":"pa$word"}}`},
		{"vscode", `{"command":"x","args":["${workspaceFolder}/a"]}`, "${workspaceFolder}, which"},
		{"vscode", `{"command":"x","args":["${workspaceFolder:api}/a"]}`, "${workspaceFolder:api}"},
		{"vscode", `{"command":"x","env":{"K":"${input:key}"}}`, "${input:key}"},
		{"vscode", `{"command":"x","env":{"K":"${command:ext.key}"}}`, "${command:ext.key}"},
		{"vscode", `{"command":"x","cwd":"${fileDirname}"}`, "${fileDirname}"},
		{"vscode", `{"url":"https://${config:host}/mcp"}`, "${config:host}"},
		{"windsurf", `{"serverUrl":"https://x/mcp","headers":{"A":"Bearer ${env:T}"}}`, `{"headers":{"A":"Bearer ${T}"},"type":"http","url":"https://x/mcp"}`},
		{"claude-code", `{"command":"x","env":{"A":"${A:-b c}","B":"$B"}}`, `{"command":"x","env":{"A":"${A:-b c}","B":"$B"}}`},
		{"claude-code", `{"command":"sh","args":["-c","echo $(date)"]}`, `{"args":["-c","echo $(date)"],"command":"sh"}`},
		{"codex", `{"command":"x","env_vars":["A","B"]}`, `{"command":"x","env":{"A":"${A}","B":"${B}"}}`},
		{"codex", `{"url":"https://x/mcp","bearer_token_env_var":"T","env_http_headers":{"X-Key":"K"}}`, `{"headers":{"Authorization":"Bearer ${T}","X-Key":"${K}"},"type":"http","url":"https://x/mcp"}`},
		{"goose", `{"cmd":"x","env_keys":["K"]}`, `"env_keys", which only this client supports`},
	}
	for _, tt := range tests {
		c, err := Find(tt.client)
		if err != nil {
			t.Fatal(err)
		}
		var entry any
		if err := json.Unmarshal([]byte(tt.entry), &entry); err != nil {
			t.Fatal(err)
		}
		got, err := c.generalEntry(entry, Env{OS: "linux", Home: "HOME"})
		text := string(got)
		if err != nil {
			text = err.Error()
		}
		if text != tt.want && (err == nil || !strings.Contains(text, tt.want)) {
			t.Errorf("%s %s:\n got %s\nwant %s", tt.client, tt.entry, text, tt.want)
		}
	}
}
