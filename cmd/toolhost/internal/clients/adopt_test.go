package clients

import (
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
		if strings.Contains(now, "memory") || strings.Contains(now, "docs") || !strings.Contains(now, `"off"`) || !strings.Contains(now, "toolhost") {
			t.Errorf("the client has %s", now)
		}
		for _, want := range []string{`"memory":`, `"-y", "memory"`, `"TOKEN": "${T}"`, `"https://docs.example/mcp"`, `"A": "b"`} {
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
		if strings.Contains(now, "toolhost") || !strings.Contains(now, `"${env:T}"`) || !strings.Contains(now, "autoApprove") || !strings.Contains(now, "docs.example") {
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
