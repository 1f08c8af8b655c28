//go:build slow

package mcpserver

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/mcpserver/audit"
)

// shellServer is a server of the old era that answers each call with what the command in its variable CMD prints. It ends with its
// input, unless STAYS is set.
const shellServer = `#!/bin/bash
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
while read -r line; do
	[[ $line =~ \"id\":([0-9]+) ]] || continue
	id=${BASH_REMATCH[1]}
	case $line in
	*'"initialize"'*) answer "$id" '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}' ;;
	*'"tools/list"'*) answer "$id" '{"tools":[{"name":"run","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}' ;;
	*'"tools/call"'*) out=$(eval "$CMD" 2>&1 | tr -d '"\\' | tr '\n' '|'); answer "$id" '{"content":[{"type":"text","text":"'"$out"'"}]}' ;;
	*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
	esac
done
[[ ! $STAYS ]] || sleep 3600
`

// shellEntry is the entry of a server that runs a command for each call, with more members.
func shellEntry(t *testing.T, command string, more map[string]any) map[string]any {
	t.Helper()
	file := filepath.Join(t.TempDir(), "server.sh")
	writeFile(t, file, shellServer)
	entry := map[string]any{"command": "bash", "args": []string{file}, "env": map[string]string{"CMD": command}}
	for name, value := range more {
		entry[name] = value
	}
	return entry
}

// runServer calls the tool of the server s.
func runServer(t *testing.T, h *Host) Reply {
	t.Helper()
	h.gateway.Wait(t.Context())
	for range 200 { // the first look may take longer on a busy machine
		if h.tools.has("mcp__s__run") {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if !h.tools.has("mcp__s__run") {
		t.Fatalf("the server offers nothing: %+v", h.gateway.Servers())
	}
	return h.Call(t.Context(), h.AdmitNamed("one"), Request{Tool: "mcp__s__run", Args: json.RawMessage("{}")})
}

// TestServerSandbox: what a server sees.
func TestServerSandbox(t *testing.T) {
	t.Setenv("TOOLHOST_TEST_SECRET", "of-the-host")
	hosts := map[string]any{"network": map[string]any{"allowedDomains": []string{"example.com"}}}
	tests := []struct {
		name, command string
		more          map[string]any
		want, not     string
	}{
		{"the workspace", "cat $WS/a.txt", nil, "content of a", ""},
		{"a denied file", "cat $WS/.env", nil, "", "SECRET"},
		{"no workspace with hosts", "cat $WS/a.txt; ls $WS", hosts, "", "a.txt|"},
		{"the workspace with hosts where it is said", "cat $WS/a.txt", map[string]any{"network": hosts["network"], "roots": "workspace"}, "content of a", ""},
		{"no variables of the host", "env", nil, "HOME=", "of-the-host"},
		{"a home of its own", "touch $HOME/x && echo made; echo $HOME", nil, "made", emptyHome + "|"},
		{"no network", "exec 3<>/dev/tcp/1.1.1.1/53 && echo connected", nil, "", "connected"},
		{"not the state of the host", "ls $STATE", nil, "", "servers"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var root, state string
			entry := shellEntry(t, "", tt.more)
			dir := t.TempDir()
			root = filepath.Join(dir, "ws")
			if err := os.MkdirAll(root, 0o700); err != nil {
				t.Fatal(err)
			}
			for name, text := range map[string]string{"a.txt": "content of a", ".env": "SECRET"} {
				if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			state = filepath.Join(dir, "state")
			entry["env"] = map[string]string{"CMD": strings.NewReplacer("$WS", root, "$STATE",
				state).Replace(tt.command)}
			h := servedBy(t, map[string]any{"s": entry}, func(c *Config) {
				c.Roots, c.StateDir, c.Deny = []string{root}, state, []string{"Read(.env)"}
			})
			if !h.policies.of(LocalPrincipal).Commands().Containment().Denies {
				t.Skip("no sandbox works here")
			}
			r := runServer(t, h)
			if r.IsError && tt.want != "" || !strings.Contains(r.Text, tt.want) || tt.not != "" &&
				strings.Contains(r.Text, tt.not) {
				t.Errorf("the server sees %q, error %v; want %q, not %q", r.Text, r.IsError, tt.want, tt.not)
			}
		})
	}
}

// TestServerSurvivors: nothing of a server outlives the host, whatever it starts and whether it heeds the end of its input.
func TestServerSurvivors(t *testing.T) {
	t.Parallel()
	for _, sandboxed := range []bool{true, false} {
		mark := fmt.Sprintf("3600.%d%v", os.Getpid(), sandboxed)
		mark = strings.NewReplacer("true", "1", "false", "2").Replace(mark)
		command := "(setsid sleep " + mark + " >/dev/null 2>&1 &); sleep " + mark +
			" >/dev/null 2>&1 & disown; echo started"
		h := servedBy(t, map[string]any{"s": shellEntry(t, "", map[string]any{"sandbox": sandboxed, "env": map[string]string{"CMD": command, "STAYS": "1"}})}, nil)
		if r := runServer(t, h); !strings.Contains(r.Text, "started") {
			t.Errorf("sandbox %v: %q", sandboxed, r.Text)
		}
		h.gateway.Close()
		if found := processesWith(t, mark); found != "" {
			t.Errorf("sandbox %v: there are still %s", sandboxed, found)
		}
	}
}

// processesWith lists the processes whose command line holds a text.
func processesWith(t *testing.T, text string) (found string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		line, err := os.ReadFile(file)
		if line = []byte(strings.ReplaceAll(string(line), "\x00", " ")); err == nil &&
			strings.Contains(string(line), "sleep "+text) {
			found += file + ": " + string(line) + "; "
		}
	}
	return found
}

// TestServerTask: a call that takes long becomes a task, which has the result and can be stopped. It gives up its turn.
func TestServerTask(t *testing.T) {
	for _, stop := range []bool{false, true} {
		flag := filepath.Join(t.TempDir(), "go")
		if err := exec.Command("mkfifo", flag).Run(); err != nil {
			t.Fatal(err)
		}
		h := servedBy(t, map[string]any{"s": shellEntry(t, "cat "+flag, map[string]any{"sandbox": false})}, func(*Config) {
			userSettings(t, map[string]any{"bash": map[string]any{"foregroundWindow": "1s"}})
		})
		r := runServer(t, h)
		id := regexp.MustCompile(`task_[A-Z0-9]+`).FindString(r.Text)
		if r.IsError || id == "" || !strings.Contains(r.Text, "the call of run of the server s still runs after 1s") {
			t.Fatalf("the call is no task: %+v", r)
		}
		if r := h.Call(t.Context(), h.AdmitNamed("one"),
			Request{Tool: "Bash", Args: json.RawMessage(`{"command":"echo runs"}`)}); !strings.Contains(r.Text, "runs") {
			t.Errorf("another call: %+v", r)
		}
		output := func() Reply {
			return h.Call(t.Context(), h.AdmitNamed("one"),
				Request{Tool: "TaskOutput", Args: fmt.Appendf(nil, `{"task_id":%q}`, id)})
		}
		if stop {
			r := h.Call(t.Context(), h.AdmitNamed("one"),
				Request{Tool: "TaskStop", Args: fmt.Appendf(nil, `{"task_id":%q}`, id)})
			if r.IsError || !strings.Contains(output().Text, "it was stopped") {
				t.Errorf("stopped: %+v, %+v", r, output())
			}
			continue
		}
		if err := os.WriteFile(flag, []byte("late\n"), 0); err != nil {
			t.Fatal(err)
		}
		if r := output(); r.IsError || !strings.Contains(r.Text, "has ended: exit code 0") ||
			!strings.Contains(r.Text, "late") {
			t.Errorf("the task: %+v", r)
		}
	}
}

// TestServerAudit: the record of a call says which server answered, and how.
func TestServerAudit(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "audit.jsonl")
	h := servedBy(t, map[string]any{"s": shellEntry(t, "echo ran", map[string]any{"sandbox": false})},
		func(c *Config) { c.AuditLog = log })
	if r := runServer(t, h); !strings.Contains(r.Text, "ran") {
		t.Fatal(r.Text)
	}
	text, err := os.ReadFile(log)
	var rec audit.Record
	if err == nil {
		err = json.Unmarshal(text, &rec)
	}
	if err != nil || rec.Server != "s" || rec.Upstream != "run" || rec.Era != "legacy" || len(rec.Pin) != 64 ||
		rec.Replayed {
		t.Errorf("the record: %s, %v", text, err)
	}
}

// TestServerRules: calls of other servers are asked for, denied and allowed by rules on the server and the tool.
func TestServerRules(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ allow, deny, want string }{
		{"", "", "No rule allows"}, {"mcp__s", "", "ran"}, {"mcp__s__run", "", "ran"}, {"mcp__s__*", "", "ran"}, {"mcp__other", "", "No rule allows"},
		{"mcp__s", "mcp__s__run", "denied by a rule"}, {"mcp__s", "mcp__s", "denied by a rule"},
	} {
		h := servedBy(t, map[string]any{"s": shellEntry(t, "echo ran", map[string]any{"sandbox": false})}, func(c *Config) {
			if c.Allow, c.Deny = nil, nil; tt.allow != "" {
				c.Allow = []string{tt.allow}
			}
			if tt.deny != "" {
				c.Deny = []string{tt.deny}
			}
		})
		if r := runServer(t, h); !strings.Contains(r.Text, tt.want) {
			t.Errorf("allow %q, deny %q: %q, want %q", tt.allow, tt.deny, r.Text, tt.want)
		}
	}
}

// TestDeadServer: one of ten servers that does not answer keeps none of the others off the first list.
func TestDeadServer(t *testing.T) {
	t.Parallel()
	entries := map[string]any{"dead": map[string]any{"command": "sleep", "args": []string{"3600"}, "sandbox": false}}
	for i := range 9 {
		entries[fmt.Sprintf("s%d", i)] = shellEntry(t, "true", map[string]any{"sandbox": false})
	}
	h := servedBy(t, entries, nil)
	began := time.Now()
	h.gateway.Wait(t.Context())
	waited := time.Since(began)
	missing := ""
	for i := range 9 {
		if name := fmt.Sprintf("mcp__s%d__run", i); !h.tools.has(name) {
			missing += " " + name
		}
	}
	t.Logf("the first list waited %s; missing:%s", waited, missing)
	for range 400 {
		if h.tools.has("mcp__s0__run") && h.tools.has("mcp__s8__run") {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("servers are missing:%s", missing)
}
