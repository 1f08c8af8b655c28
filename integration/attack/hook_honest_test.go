//go:build slow && linux

package attack

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// honestFiles are what the hooks of the tables find. The programs in bin stand for those of a machine.
var honestFiles = map[string]string{
	"bin/notify-send":       "#!/bin/sh\necho \"$*\" >>\"$HOME/notified\"\n",
	"bin/prettier":          "#!/bin/sh\nfor f; do :; done\necho formatted >>\"$f\"\n",
	"bin/uv":                "#!/bin/sh\nshift\nexec python3 \"$@\"\n",
	"home/.claude/check.sh": "#!/bin/bash\ngrep -q \"$1\" && { echo \"not $1\" >&2; exit 2; }\necho checked >>~/.claude/checked\nexit 0\n",

	"ws/.claude/hooks/guard.sh": "#!/usr/bin/env bash\nset -euo pipefail\nDIR=\"$(cd \"$(dirname \"${BASH_SOURCE[0]}\")\" && pwd)\"\n. \"$DIR/lib.sh\"\nfile=$(jq -r '.tool_input.file_path')\nif [[ $file == *\"$1\"* ]]; then refuse \"$1\"; fi\n",
	"ws/.claude/hooks/lib.sh":   "refuse() { echo \"not $1\" >&2; exit 2; }\n",
	"ws/.claude/hooks/guard.py": pythonGuard,
	"ws/.claude/hooks/log.py":   "import json, os, sys\ndata = json.load(sys.stdin)\nwith open(os.path.expanduser('~/.claude/py.log'), 'a') as f:\n    f.write(data['tool_name'] + '\\n')\n",
	"ws/.claude/hooks/guard.js": "let s = '';\nprocess.stdin.on('data', d => s += d).on('end', () => {\n  if (JSON.parse(s).tool_input.file_path.includes(process.argv[2])) { console.error('not ' + process.argv[2]); process.exit(2); }\n});\n",
	"ws/scripts/guard.py":       pythonGuard,
	"ws/scripts/log.sh":         "#!/bin/bash\nLOG=\"$HOME/.claude/sh.log\"\nmkdir -p \"$(dirname \"$LOG\")\"\necho \"$(date +%s) $(jq -r .tool_name)\" >> \"$LOG\"\n",
	"ws/Makefile":               "lint:\n\t@echo ok >linted\n",
	"ws/node_modules/.bin/fmt":  "#!/bin/sh\necho node >>\"$1\"\n",
	"ws/.venv/bin/black":        "#!/bin/sh\necho black >>\"$1\"\n",
	"ws/package.json":           `{"name":"x","scripts":{"guard":"sh -c 'cat >/dev/null'"}}`,
}

const pythonGuard = "#!/usr/bin/env python3\nimport json, sys\n\nif __name__ == '__main__':\n    if sys.argv[1] in json.load(sys.stdin)['tool_input']['file_path']:\n        print('not ' + sys.argv[1], file=sys.stderr)\n        sys.exit(2)\n"

// deciding are hooks that refuse to write a file whose name holds NAME, with "not NAME", as people write them.
var deciding = []string{
	`f=$(jq -r '.tool_input.file_path // empty'); case "$f" in *NAME*) echo "not NAME" >&2; exit 2;; esac`,
	`if grep -q NAME; then echo "not NAME" >&2; exit 2; fi`,
	`jq -e '.tool_input.file_path | test("NAME")' >/dev/null && { echo 'not NAME' >&2; exit 2; } || exit 0`,
	`jq -c 'if (.tool_input.file_path | test("NAME")) then {hookSpecificOutput: {hookEventName: "PreToolUse", permissionDecision: "deny", permissionDecisionReason: "not NAME"}} else empty end'`,
	`"$CLAUDE_PROJECT_DIR"/.claude/hooks/guard.sh NAME`,
	`bash $CLAUDE_PROJECT_DIR/.claude/hooks/guard.sh NAME`,
	`cd "$CLAUDE_PROJECT_DIR" && .claude/hooks/guard.sh NAME`,
	`python3 "$CLAUDE_PROJECT_DIR/.claude/hooks/guard.py" NAME`,
	`~/.claude/check.sh NAME`,
	`timeout 20 ~/.claude/check.sh NAME`,
	`python3 scripts/guard.py NAME`,
	`python3 -c "import json,sys; sys.exit(2 if 'NAME' in json.load(sys.stdin)['tool_input']['file_path'] and not print('not NAME', file=sys.stderr) else 0)"`,
	`uv run "$CLAUDE_PROJECT_DIR/.claude/hooks/guard.py" NAME`,
	`node "$CLAUDE_PROJECT_DIR/.claude/hooks/guard.js" NAME`,
	`node -e 'const d = JSON.parse(require("fs").readFileSync(0)); if (d.tool_input.file_path.includes("NAME")) { console.error("not NAME"); process.exit(2) }'`,
	`perl -ne 'if (/NAME/) { print STDERR "not NAME\n"; exit 2 }'`,
}

// acting are hooks that leave text in a file. Those that need more than the workspace and the logs that they name need
// "contained": false.
var acting = []struct {
	command, file, text string
	outside             bool
}{
	{`jq -r .tool_name >> ~/.claude/tools.log`, "home/.claude/tools.log", "Write", false},
	{`LOG_DIR="$HOME/.claude/logs"; mkdir -p "$LOG_DIR"; jq -c . >> "$LOG_DIR/post.jsonl"`, "home/.claude/logs/post.jsonl", "PostToolUse", true},
	{`notify-send "Claude Code" "$(jq -r .tool_name)"`, "home/notified", "Claude Code Write", true},
	{`curl -fsS -m 20 -d "$(jq -r .tool_name)" URL >/dev/null && echo sent >> ~/.claude/sent`, "home/.claude/sent", "sent", true},
	{`$CLAUDE_PROJECT_DIR/scripts/log.sh`, "home/.claude/sh.log", "Write", true},
	{`python3 .claude/hooks/log.py`, "home/.claude/py.log", "Write", true},
	{`date +%s >> ~/.claude/times`, "home/.claude/times", "1", false},
	{`jq -r .tool_name >> "$CLAUDE_PROJECT_DIR/tools.log"`, "ws/tools.log", "Write", false},
	{`jq -r .tool_input.file_path | xargs prettier --write`, "ws/effect.txt", "formatted", false},
	{`f=$(jq -r .tool_input.file_path); node_modules/.bin/fmt "$f"`, "ws/effect.txt", "node", false},
	{`.venv/bin/black "$(jq -r .tool_input.file_path)"`, "ws/effect.txt", "black", false},
	{`make -s lint`, "ws/linted", "ok", false},
	{`python3 -c 'import tempfile; f = tempfile.NamedTemporaryFile(); open("temp.txt", "w").write("temporary")'`, "ws/temp.txt", "temporary", false},
	{`git log -1 --format=%s > last.txt`, "ws/last.txt", "start", false},
}

// TestHonestHooks runs hooks as people write them, contained or with "contained": false as they need it: they do what they say.
func TestHonestHooks(t *testing.T) {
	host.NeedsContained(t)
	w := honestWorld(t)
	var sent atomic.Int32
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { sent.Add(1) }))
	defer service.Close()
	outside := map[string]bool{}
	entry := func(command string, out bool) map[string]any {
		outside[command] = out
		h := map[string]any{"type": "command", "command": command}
		if out {
			h["contained"] = false
		}
		return h
	}
	var pre, post []any
	name := func(i int) string { return fmt.Sprintf("refuse-%d-", i) }
	for i, h := range deciding {
		pre = append(pre, entry(strings.ReplaceAll(h, "NAME", name(i)), false))
	}
	for _, h := range acting {
		post = append(post, entry(strings.ReplaceAll(h.command, "URL", service.URL), h.outside))
	}
	rules := w.hooks(t, pre, post)
	listHooks(t, w, rules, outside)
	h := w.host(t, host.StdioModern, "--root", w.ws, "--settings", rules)
	for i, command := range deciding {
		said := h.call(t, "Write", fmt.Sprintf(`{"file_path":"%s.txt","content":"x"}`, name(i)), name(i))
		if said.ok || !strings.Contains(said.text, "not "+name(i)) || exists(filepath.Join(w.ws, name(i)+".txt")) {
			t.Errorf("%s: the call is not refused: %s", command, said.text)
		}
	}
	if said := h.call(t, "Write", `{"file_path":"effect.txt","content":"x\n"}`, "effect"); !said.ok ||
		strings.Contains(said.text, "failed") {
		t.Errorf("a call that no hook refuses: %s", said.text)
	}
	for _, hook := range acting {
		host.Eventually(t, func() string {
			if got, err := os.ReadFile(filepath.Join(w.root, hook.file)); err != nil ||
				!strings.Contains(string(got), hook.text) {
				return fmt.Sprintf("%s left %q, %v in %s", hook.command, got, err, hook.file)
			}
			return ""
		})
	}
	if sent.Load() == 0 {
		t.Error("no request came to the service")
	}
	host.Must(t, h.Stop())
}

// TestHonestHooksContained: of a hook that the sandbox keeps from its work, the result says so, and what a person can do.
func TestHonestHooksContained(t *testing.T) {
	host.NeedsContained(t)
	w := honestWorld(t)
	for i, hook := range acting {
		if !hook.outside {
			continue
		}
		command := strings.ReplaceAll(hook.command, "URL", "http://service.example")
		rules := w.hooks(t, nil, []any{map[string]any{"type": "command", "command": command}})
		h := w.host(t, host.StdioModern, "--root", w.ws, "--settings", rules)
		said := h.call(t, "Write", fmt.Sprintf(`{"file_path":"effect-%d.txt","content":"x"}`, i), command)
		if !said.ok || !strings.Contains(said.text, `"contained": false`) {
			t.Errorf("%s: %s", command, said.text)
		}
		host.Must(t, h.Stop())
	}
}

// honestWorld returns a world with honestFiles, and their programs in PATH.
func honestWorld(t *testing.T) *world {
	w := newWorld(t)
	for name, text := range honestFiles {
		path := filepath.Join(w.root, name)
		host.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		host.Must(t, os.WriteFile(path, []byte(text), 0o755))
	}
	t.Setenv("PATH", filepath.Join(w.root, "bin")+":"+os.Getenv("PATH"))
	return w
}

// hooks writes a settings file with hooks for Write, and returns its path.
func (w *world) hooks(t *testing.T, pre, post []any) string {
	t.Helper()
	rules := filepath.Join(w.root, "hooks.json")
	text, err := json.Marshal(map[string]any{"hooks": map[string]any{
		"PreToolUse": []any{map[string]any{"matcher": "Write", "hooks": pre}}, "PostToolUse": []any{map[string]any{"matcher": "Write", "hooks": post}},
	}})
	host.Must(t, err)
	host.Must(t, os.WriteFile(rules, text, 0o644))
	return rules
}

// listHooks compares how toolhost rules says that hooks run.
func listHooks(t *testing.T, w *world, rules string, outside map[string]bool) {
	t.Helper()
	cmd := exec.Command(host.Binary, "rules", "--json", "--root", w.ws, "--settings", rules)
	cmd.Env = host.CleanEnv(w.home)
	out, err := cmd.Output()
	host.Must(t, err)
	var list struct {
		Hooks []struct {
			Command   string
			Contained bool
		}
	}
	host.Must(t, json.Unmarshal(out, &list))
	if len(list.Hooks) != len(outside) {
		t.Errorf("%d hooks are listed, want %d", len(list.Hooks), len(outside))
	}
	for _, h := range list.Hooks {
		if h.Contained == outside[h.Command] {
			t.Errorf("%s is contained: %v, want %v", h.Command, h.Contained, !outside[h.Command])
		}
	}
}
