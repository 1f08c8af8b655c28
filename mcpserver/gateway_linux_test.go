package mcpserver

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// servedBy opens a host with a server for each entry.
func servedBy(t *testing.T, entries map[string]any, change func(*Config)) *Host {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is missing")
	}
	raw, err := json.Marshal(map[string]any{"mcpServers": entries})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "servers.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	c := startPipe(t, nil, func(c *Config) {
		c.MCPConfig, c.Allow = []string{file}, []string{"mcp__s"}
		if change != nil {
			change(c)
		}
	})
	return c.host
}

// TestMissingVariable: a server whose entry names a variable that is not set fails, also when a tool of it is called that is not known.
func TestMissingVariable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "servers.json")
	writeFile(t, file, `{"mcpServers":{"s":{"command":"${TOOLHOST_TEST_UNSET}"}}}`)
	c := startPipe(t, nil, func(c *Config) { c.MCPConfig = []string{file} })
	for i := range 2 { // also when it is known to have failed
		c.send(toolCall(i+1, "mcp__s__run", "{}"))
		if a := c.receive(); a.Error != nil || !strings.Contains(string(a.Result), `"isError":true`) ||
			!strings.Contains(string(a.Result), "the variable TOOLHOST_TEST_UNSET in its entry in") {
			t.Errorf("call %d: %+v", i, a)
		}
	}
	c.send(toolCall(5, "ToolSearch", `{"query":"run"}`))
	if a := c.receive(); !strings.Contains(string(a.Result), "TOOLHOST_TEST_UNSET") {
		t.Errorf("a search: %s", a.Result)
	}
}
