package mcpserver

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/samples"
	"github.com/toolhost/toolhost/integration/testenv"
)

// realServers returns the command of a server of npm. The directory TOOLHOST_SERVERS holds them.
func realServer(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("TOOLHOST_SERVERS")
	if dir == "" {
		t.Skip("TOOLHOST_SERVERS names no node_modules/.bin with the servers of @modelcontextprotocol")
	}
	return filepath.Join(dir, "mcp-server-"+name)
}

// marked counts the processes that have a text in their environment.
func marked(t *testing.T, text string) (n int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if env, err := os.ReadFile(file); err == nil && strings.Contains(string(env), text) {
			n++
		}
	}
	return n
}

// TestRealServers: the reference servers work in their sandboxes as they are, and none of their processes outlives the host.
func TestRealServers(t *testing.T) {
	t.Parallel()
	testenv.NotShort(t, "starts servers of others")
	root := t.TempDir()
	mark := "SERVERS_OF=" + root
	t.Cleanup(func() { // after the host was closed
		if n := marked(t, mark); n > 0 {
			t.Errorf("%d processes of servers outlive the host", n)
		}
	})
	servers := samples.Of([]struct{ name, tool, args, want string }{
		{"filesystem", "write_file", fmt.Sprintf(`{"path":%q,"content":"x"}`, filepath.Join(root, "made.txt")), "wrote"},
		{"everything", "get-sum", `{"a":1,"b":2}`, "3"}, {"memory", "read_graph", `{}`, "entities"},
		{"sequential-thinking", "sequentialthinking",
			`{"thought":"a","nextThoughtNeeded":false,"thoughtNumber":1,"totalThoughts":1}`, "thoughtNumber"},
	}, 1)
	entries, allow := map[string]any{}, []string{}
	for _, s := range servers {
		entry := map[string]any{"command": realServer(t, s.name), "env": map[string]string{"SERVERS_OF": root}}
		if s.name == "filesystem" {
			entry["args"] = []string{root}
		}
		entries[s.name] = entry
		allow = append(allow, "mcp__"+s.name)
	}
	h := servedBy(t, entries, func(c *Config) { c.Roots, c.Allow = []string{root}, allow })
	for _, s := range servers {
		tool := "mcp__" + s.name + "__" + s.tool
		for end := time.Now().Add(time.Minute); !h.tools.has(tool) &&
			time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		}
		if r := h.Call(t.Context(), h.AdmitNamed("one"),
			Request{Tool: tool, Args: json.RawMessage(s.args)}); r.IsError || !strings.Contains(r.Text, s.want) {
			t.Errorf("%s: %.300s", tool, r.Text)
		}
	}
	if n := marked(t, mark); n < len(entries) {
		t.Errorf("%d processes of %d servers run", n, len(entries))
	}
	if text, err := os.ReadFile(filepath.Join(root, "made.txt")); err != nil || string(text) != "x" {
		t.Errorf("the file that a server wrote: %q, %v", text, err)
	}
}

// TestListedServer: the tools of a server that needs a browser to be called are listed without one.
func TestListedServer(t *testing.T) {
	command := filepath.Join(filepath.Dir(realServer(t, "")), "playwright-mcp")
	if _, err := os.Stat(command); err != nil {
		t.Skip("TOOLHOST_SERVERS does not hold @playwright/mcp")
	}
	h := servedBy(t, map[string]any{"pw": map[string]any{"command": command, "args": []string{"--headless"}}}, nil)
	h.gateway.Look()
	for end := time.Now().Add(time.Minute); !h.tools.has("mcp__pw__browser_navigate") &&
		time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
	}
	if !h.tools.has("mcp__pw__browser_navigate") {
		t.Errorf("the servers are %+v", h.gateway.Servers())
	}
}

// BenchmarkServerCall compares a call of a server through the host with one of the server alone, in turn. The goal is 1 ms more.
func BenchmarkServerCall(b *testing.B) {
	command := realServer(b, "everything")
	file := filepath.Join(b.TempDir(), "servers.json")
	if err := os.WriteFile(file, fmt.Appendf(nil, `{"mcpServers":{"e":{"command":%q}}}`, command), 0o600); err != nil {
		b.Fatal(err)
	}
	h, _ := openHost(b, nil, func(c *Config) { c.MCPConfig, c.Allow = []string{file}, []string{"mcp__e"} })
	h.gateway.Look()
	for !h.tools.has("mcp__e__get-sum") {
		time.Sleep(10 * time.Millisecond)
	}
	cmd := exec.Command(command)
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() { in.Close(); cmd.Process.Kill(); cmd.Wait() }()
	lines := bufio.NewReader(out)
	ask := func(id int, method, params string) {
		fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params)
		for {
			line, err := lines.ReadString('\n')
			if err == io.EOF || strings.Contains(line, fmt.Sprintf(`"id":%d`, id)) {
				return
			}
		}
	}
	ask(1, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"b","version":"1"}}`)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	call := func() {
		h.Call(b.Context(), h.AdmitNamed("one"), Request{Tool: "mcp__e__get-sum", Args: json.RawMessage(`{"a":1,"b":2}`)})
	}
	call() // starts it
	var alone, through []time.Duration
	for i := 0; b.Loop(); i++ {
		began := time.Now()
		ask(10+i, "tools/call", `{"name":"get-sum","arguments":{"a":1,"b":2}}`)
		middle := time.Now()
		call()
		alone, through = append(alone, middle.Sub(began)), append(through, time.Since(middle))
	}
	slices.Sort(alone)
	slices.Sort(through)
	b.ReportMetric(float64(alone[len(alone)/2].Microseconds()), "alone-µs")
	b.ReportMetric(float64(through[len(through)/2].Microseconds()), "through-µs")
}
