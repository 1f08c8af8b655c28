package attack

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// hostPrograms are names that the host, or what it starts outside of the sandbox, looks for in PATH.
var hostPrograms = strings.Fields("git sh bash env xdg-open tool jq uname cat ls mkdir ssh git-lfs less gpg fsmonitor npx node python3 toolhost")

// A plantedPath is a way to plant programs in PATH. dir is the directory that gets them, below the world; path the
// entries that lead there, in front of the honest ones.
type plantedPath struct {
	name, dir string
	home      bool              // the home directory is the root
	links     map[string]string // name → target, both below the world
	path      func(w *world) string
}

var plantedPaths = []plantedPath{
	{name: "venv", dir: "ws/.venv/bin", path: func(w *world) string { return w.ws + "/.venv/bin" }},
	{name: "node_modules", dir: "ws/node_modules/.bin", path: func(w *world) string { return w.ws + "/node_modules/.bin" }},
	{name: "link to a directory", dir: "ws/bin", links: map[string]string{"mine/bin": "ws/bin"}, path: func(w *world) string { return w.root + "/mine/bin" }},
	{name: "link above", dir: "ws/t/bin", links: map[string]string{"mine": "ws/t"}, path: func(w *world) string { return w.root + "/mine/bin" }},
	{name: "dots", dir: "ws/bin", path: func(w *world) string { return w.home + "/../ws/./bin/" }},
	{name: "relative", dir: "ws/bin", path: func(*world) string { return "bin:./bin" }},
	{name: "empty", dir: "ws", path: func(*world) string { return "" }},
	{name: "home", dir: "home/.local/bin", home: true, path: func(w *world) string { return w.home + "/.local/bin" }},
	{name: "home link", dir: "home/tools", home: true, links: map[string]string{"home/.local/bin": "home/tools"}, path: func(w *world) string { return w.home + "/.local/bin" }},
}

// plant returns a script that plants the programs; each says in a file that it ran.
func (p plantedPath) plant(w *world) string {
	dir := filepath.Join(w.root, p.dir)
	return fmt.Sprintf("mkdir -p %[1]s; for p in %[2]s; do printf '#!/bin/sh\\necho \"$0 $*\" >>%[3]s/pwned\\n' >%[1]s/$p; chmod +x %[1]s/$p; done",
		dir, strings.Join(hostPrograms, " "), w.root)
}

// honest writes programs of the user that lie outside of the roots, and returns their directory.
func honest(t *testing.T, w *world, scripts map[string]string) string {
	t.Helper()
	dir := filepath.Join(w.root, "honest")
	host.Must(t, os.MkdirAll(dir, 0o755))
	for name, text := range scripts {
		host.Must(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755))
	}
	return dir
}

// hostWith starts a host with another PATH.
func (w *world) hostWith(t *testing.T, path string, flags ...string) *witness {
	t.Helper()
	ctx, cancel := host.Patient()
	defer cancel()
	started, err := host.StartHost(ctx, host.StdioModern, w.ws, append(host.CleanEnv(w.home), "PATH="+path), flags...)
	host.Must(t, err)
	h := &witness{Host: started}
	t.Cleanup(func() {
		if !h.Ended {
			_ = h.Stop() // what ended the test early has been told
		}
	})
	return h
}

// enterWorktree has a conversation enter a worktree, which git of the host makes, and returns the answer.
func enterWorktree(t *testing.T, h *witness) string {
	t.Helper()
	ctx, cancel := host.Patient()
	defer cancel()
	p, err := h.Start(ctx, "EnterWorktree", `{"name":"fix"}`, map[string]any{"threadId": "t"})
	host.Must(t, err)
	raw, err := p.Wait(ctx)
	host.Must(t, err)
	var result client.Result
	host.Must(t, json.Unmarshal(raw, &result))
	return result.Text()
}

// TestAttackHostPrograms plants programs in PATH, before the host starts and by a command of the agent after that, and has
// the host start its own. The user's programs must run, and find nothing planted either.
func TestAttackHostPrograms(t *testing.T) {
	t.Parallel()
	for _, p := range samples.Few(plantedPaths) {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s late=%v", p.name, late), func(t *testing.T) {
				t.Parallel()
				attackHostPrograms(t, p, late)
			})
		}
	}
}

func attackHostPrograms(t *testing.T, p plantedPath, late bool) {
	if late && !host.Contained(t) {
		t.Skip("nothing contains commands here")
	}
	w := newWorld(t)
	ran := filepath.Join(w.root, "honest-ran")
	dir := honest(t, w, map[string]string{
		"tool": "uname >/dev/null; echo server >>" + ran, "helper": "uname >/dev/null; echo helper >>" + ran + "; echo '{}'",
		"searcher": "uname >/dev/null; echo searcher >>" + ran + `; echo '{"results":[]}'`, "notifier": "cat >/dev/null; echo notifier >>" + ran,
	})
	for name, target := range p.links {
		host.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(w.root, name)), 0o755))
		host.Must(t, os.MkdirAll(filepath.Join(w.root, target), 0o755))
		host.Must(t, os.Symlink(filepath.Join(w.root, target), filepath.Join(w.root, name)))
	}
	if !late {
		host.Shell(t, w.home, w.root, p.plant(w))
	}
	write := func(name string, v any) string {
		raw, err := json.Marshal(v)
		host.Must(t, err)
		host.Must(t, os.WriteFile(filepath.Join(w.root, name), raw, 0o644))
		return filepath.Join(w.root, name)
	}
	type m = map[string]any
	rules := write("hostprogram.json", m{
		"permissions": m{"allow": []string{"WebSearch", "EnterWorktree", "ExitWorktree", "Bash(*)"}, "defaultMode": "acceptEdits"},
		"web":         m{"search": []m{{"provider": "command", "command": "searcher"}}},
		"hooks":       m{"PostToolUse": []m{{"matcher": "Glob", "hooks": []m{{"type": "command", "contained": false, "command": "notifier"}}}}},
	})
	servers := write("servers.json", m{"mcpServers": m{
		"out": m{"command": "tool", "sandbox": false}, "web": m{"type": "http", "url": "http://127.0.0.1:9/mcp", "headersHelper": "helper"},
	}})
	root := w.ws
	if p.home {
		root = w.home
	}
	h := w.hostWith(t, p.path(w)+":"+dir+":"+os.Getenv("PATH"), "--root", root, "--settings", rules, "--mcp-config",
		servers, "--with", "EnterWorktree,ExitWorktree")
	if late {
		if said := h.call(t, "Bash", `{"command":`+quoted(t, p.plant(w))+`}`, "plant"); !said.ok ||
			!exists(filepath.Join(w.root, p.dir, "git")) {
			t.Fatalf("nothing was planted: %s", said.text)
		}
	}
	h.call(t, "WebSearch", `{"query":"words"}`, "search")
	h.call(t, "Glob", `{"pattern":"*.md"}`, "hook")
	if !p.home { // it is no repository
		if text := enterWorktree(t, h); !strings.Contains(text, "worktrees") {
			t.Errorf("git of the system was not found: %s", text)
		}
	}
	host.Eventually(t, func() string {
		raw, _ := os.ReadFile(ran)
		for _, name := range []string{"server", "helper", "searcher", "notifier"} {
			if !strings.Contains(string(raw), name) {
				return name + " of the user did not run: " + string(raw) + h.Stderr.String()
			}
		}
		return ""
	})
	host.Must(t, h.Stop())
	if raw, err := os.ReadFile(filepath.Join(w.root, "pwned")); err == nil {
		t.Errorf("the host ran what was planted:\n%s", raw)
	}
}
