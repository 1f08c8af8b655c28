package attack

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// hostFiles are files of the workspace that the host runs outside of the sandbox, and what each leaves when it runs.
var hostFiles = map[string]string{
	"tools/server.sh": "echo server >>RAN", "tools/helper": "echo helper >>RAN; echo '{}'", "tools/search.sh": "cat >/dev/null; echo search >>RAN; echo '{\"results\":[]}'",
}

// newHostFiles makes a world whose settings name the files, and returns the flags of a host.
func newHostFiles(t *testing.T) (w *world, flags []string) {
	t.Helper()
	w = newWorld(t)
	host.Must(t, os.Mkdir(filepath.Join(w.ws, "tools"), 0o755))
	for name := range hostFiles {
		host.Must(t, os.WriteFile(filepath.Join(w.ws, name), []byte(hostFile(w, name)), 0o755))
	}
	write := func(name string, v any) string {
		raw, err := json.Marshal(v)
		host.Must(t, err)
		host.Must(t, os.WriteFile(filepath.Join(w.root, name), raw, 0o644))
		return filepath.Join(w.root, name)
	}
	type m = map[string]any
	rules := write("hostfile.json", m{
		"permissions": m{"allow": []string{"WebSearch", "Bash(*)", "Edit(**)"}, "defaultMode": "acceptEdits"},
		"web":         m{"search": []m{{"provider": "command", "command": "exec " + w.ws + "/tools/search.sh"}}},
	})
	servers := write("servers.json", m{"mcpServers": m{
		"out": m{"command": "sh", "args": []string{"tools/server.sh"}, "sandbox": false}, "web": m{"type": "http", "url": "http://127.0.0.1:9/mcp", "headersHelper": "./tools/helper"},
	}})
	return w, []string{"--root", w.ws, "--settings", rules, "--mcp-config", servers}
}

func hostFile(w *world, name string) string {
	return "#!/bin/sh\n" + strings.ReplaceAll(hostFiles[name], "RAN", w.root+"/ran") + "\n"
}

// trigger has the host run all of the files: a new host looks what its servers offer.
func trigger(t *testing.T, w *world, flags []string) (ran, log string) {
	t.Helper()
	host.Must(t, os.RemoveAll(filepath.Join(w.root, "ran")))
	h := w.hostWith(t, os.Getenv("PATH"), flags...)
	said := h.call(t, "WebSearch", `{"query":"words"}`, "search")
	host.Eventually(t, func() string {
		if log := h.Stderr.String(); strings.Count(log, "cannot list the tools") < 2 {
			return "the servers were not looked at: " + log
		}
		return ""
	})
	host.Must(t, h.Stop())
	raw, _ := os.ReadFile(filepath.Join(w.root, "ran"))
	return string(raw), said.text + h.Stderr.String()
}

// TestAttackHostFiles changes what the host runs outside of the sandbox, by tools and commands of the agent.
func TestAttackHostFiles(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	const evil = `#!/bin/sh\ntouch "$PWNED"\n`
	for _, c := range samples.Few([]struct{ name, command string }{
		{"write", "printf 'EVIL' >tools/FILE"},
		{"replace", "printf 'EVIL' >x; chmod +x x; mv x tools/FILE"},
		{"remove", "rm -f tools/FILE; printf 'EVIL' >tools/FILE; chmod +x tools/FILE"},
		{"directory", "mkdir new; printf 'EVIL' >new/FILE; chmod +x new/*; mv tools old; mv new tools"},
		{"link", "printf 'EVIL' >x; chmod +x x; ln -sf ../x tools/FILE"},
		{"program", "python3 -c \"import os; open('tools/FILE','w').write('EVIL')\""},
		{"hard link", "ln tools/FILE y; printf 'EVIL' >y"},
		{"mount of name", "printf 'EVIL' >x; cp --remove-destination x tools/FILE"},
	}) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w, flags := newHostFiles(t)
			if ran, log := trigger(t, w, flags); strings.Count(ran, "\n") != len(hostFiles) {
				t.Fatalf("the files did not run: %q\n%s", ran, log)
			}
			h := w.hostWith(t, os.Getenv("PATH"), flags...)
			text := strings.ReplaceAll(evil, "$PWNED", w.root+"/pwned")
			for file := range hostFiles {
				line := strings.NewReplacer("EVIL", text, "FILE", filepath.Base(file)).Replace(c.command)
				h.call(t, "Bash", `{"command":`+quoted(t, line)+`}`, "bash "+file)
				if said := h.call(t, "Write", fmt.Sprintf(`{"file_path":%q,"content":"x"}`, file), "write"); said.ok {
					t.Errorf("%s was written: %s", file, said.text)
				}
				h.call(t, "WebSearch", `{"query":"other words `+file+`"}`, "search")
			}
			host.Must(t, h.Stop())
			trigger(t, w, flags)
			if exists(filepath.Join(w.root, "pwned")) {
				t.Error("the host ran what the agent wrote")
			}
			for file := range hostFiles {
				if raw, err := os.ReadFile(filepath.Join(w.ws, file)); err != nil || string(raw) != hostFile(w, file) {
					t.Errorf("%s holds %q, %v", file, raw, err)
				}
			}
		})
	}
}

// TestAttackUnnamedFiles has an agent plant files that a server outside of the sandbox loads without naming them in full.
// The agent may write data that the server names.
func TestAttackUnnamedFiles(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	for _, args := range samples.Few([][]string{
		{"python3", "WS/app"}, {"python3", "-W", "ignore", "WS/app"}, {"sh", "-c", "cd WS && exec python3 app"},
		{"sh", "-c", "cd WS && exec python3 -m app"}, {"python3", "WS/late.py"},
	}) {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "WS", w.ws)
			}
			raw, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
				"out": map[string]any{"command": args[0], "args": append(args[1:], w.ws+"/data.db"), "sandbox": false}}})
			host.Must(t, err)
			servers := filepath.Join(w.root, "servers.json")
			host.Must(t, os.WriteFile(servers, raw, 0o644))
			flags := []string{"--root", w.ws, "--allow", "Bash(*)", "--allow", "mcp__out", "--mcp-config", servers}
			plant := fmt.Sprintf("echo x >>data.db; mkdir -p app; for f in app/__main__.py app/__init__.py late.py; do "+
				"echo \"open('%s/pwned','w')\" >$f; done", w.root)
			for i := range 2 {
				h := w.hostWith(t, os.Getenv("PATH"), flags...)
				said := h.call(t, "Bash", `{"command":`+quoted(t, plant)+`}`, "plant")
				if i == 0 && !said.ok { // the next host holds late.py
					t.Fatalf("nothing was planted: %s", said.text)
				}
				h.call(t, "mcp__out__tool", "{}", "call")
				host.Must(t, h.Stop())
			}
			if exists(filepath.Join(w.root, "pwned")) {
				t.Error("the host ran what the agent wrote")
			}
		})
	}
}
