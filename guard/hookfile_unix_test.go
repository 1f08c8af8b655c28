//go:build unix

package guard

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/guard/settings"
)

// hookWorkspace is what the hooks of the tables find.
var hookWorkspace = map[string]string{
	"tools/guard":              "#!/bin/sh\nexit 0\n",
	"tools/nested":             "#!/bin/bash\n. \"$(dirname \"$0\")/lib.sh\"\n",
	"tools/lib.sh":             "say() { echo \"$1\"; }\n",
	"tools/guard.py":           "import json, sys\njson.load(sys.stdin)\n",
	"tools/pyenv":              "#!ROOT/.venv/bin/python\n",
	"tools/guard.js":           "require('./lib')\n",
	"data.json":                "{}\n",
	".git/guard.py":            "\n",
	"main.go":                  "package main\n",
	".claude/hooks/guard.py":   "import json, sys\n\nif __name__ == \"__main__\":\n    print('ok \u2705', file=sys.stderr)\n",
	".claude/hooks/log.sh":     "#!/usr/bin/env bash\nLOG=\"$HOME/.claude/hooks.log\"\nmkdir -p \"$(dirname \"$LOG\")\"\ninput=$(cat)\ntool=$(echo \"$input\" | jq -r '.tool_name')\necho \"$(date) $tool\" >> \"$LOG\"\nexit 0\n",
	"node_modules/.bin/eslint": "#!/bin/sh\n",
	".venv/bin/black":          "#!/bin/sh\n",
}

// makeHookWorkspace makes a workspace for hooks.
func makeHookWorkspace(t *testing.T, root string) {
	t.Helper()
	for name, text := range hookWorkspace {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "ROOT", root)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("tools", filepath.Join(root, "linked")),
		os.WriteFile(filepath.Join(root, "tools/twice"), nil, 0o755),
		os.Link(filepath.Join(root, "tools/twice"), filepath.Join(root, "twice"))); err != nil {
		t.Fatal(err)
	}
}

// TestHookFiles finds which files of the workspace are protected because a hook runs them.
func TestHookFiles(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	testHookFiles(t, base+"/ws")
	testHookFiles(t, base+"/it's a root")
}

func testHookFiles(t *testing.T, root string) {
	makeHookWorkspace(t, root)
	for _, tt := range []struct {
		command string
		args    []string
		held    string
	}{
		{"tools/guard", nil, "tools/guard"},
		{`"${CLAUDE_PROJECT_DIR}/tools/guard" x`, nil, "tools/guard"},
		{"${CLAUDE_PROJECT_DIR}/tools/guard", []string{"x"}, "tools/guard"},
		{"${CLAUDE_PROJECT_DIR:-.}/tools/guard", nil, "tools/guard"},
		{`"$PWD"/tools/guard; "$(pwd)/tools/nested"`, nil, "tools/guard tools/nested"},
		{"sh -c 'tools/guard; true'", nil, "tools/guard"},
		{"timeout 5 env X=1 python3 tools/guard.py", nil, "tools/guard.py"},
		{`cd "$CLAUDE_PROJECT_DIR"/tools && ./guard`, nil, "tools/guard"},
		{`cd tools && python3 -I guard.py`, nil, "tools/guard.py"},
		{"python3", []string{"-I", "${CLAUDE_PROJECT_DIR}/tools/guard.py", "data.json"}, "data.json tools/guard.py"},
		{"tools/guard --config=data.json", nil, "data.json tools/guard"},
		{"bash -c '. tools/lib.sh; say x'", nil, "tools/lib.sh"},
		{"node tools/guard.js", nil, "tools/guard.js"},
		{"uv run tools/guard.py", nil, "tools/guard.py"},
		{"linked/guard", nil, "linked/guard tools/guard"},
		{"sh < tools/guard", nil, "tools/guard"},
		{"cat tools/guard | sh", nil, "tools/guard"},
		{"[ ! -x tools/none ] || tools/none", nil, ""},
		{"node_modules/.bin/eslint .", nil, "node_modules/.bin/eslint"},
		{"python3 $CLAUDE_PROJECT_DIR/.claude/hooks/guard.py", nil, ".claude/hooks .claude/hooks/guard.py"},
		{"bash .claude/hooks/log.sh", nil, ".claude/hooks .claude/hooks/log.sh"},
		// What a hook only reads, writes or speaks of is anyone's to write.
		{`jq -r .tool_input.file_path | grep -q data.json && exit 2`, nil, ""},
		{`python3 -c "import sys; sys.exit(2 if 'data.json' in sys.stdin.read() else 0)"`, nil, ""},
		{`case "$(jq -r .tool_input.file_path)" in data.json|main.go) exit 2;; esac`, nil, ""},
		{"gofmt -l main.go >>data.json", nil, ""},
		{"tools/guard <data.json >>tools.log", nil, "tools/guard"},
		{"npx prettier --write data.json", nil, ""},
		{`jq -c . >> "$CLAUDE_PROJECT_DIR/.claude/log"`, nil, ""},
		{"/usr/bin/true main.go; ~/bin/x", nil, ""},
		{"echo '", nil, ""},
	} {
		p := hookPolicy(t, root, settings.Hook{Type: "command", Command: tt.command, Args: tt.args})
		var got []string
		for _, name := range p.data.hostFiles.Names {
			rel, err := filepath.Rel(root, name)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, rel)
		}
		slices.Sort(got)
		if got := strings.Join(slices.Compact(got), " "); got != tt.held {
			t.Errorf("%s %q holds %q, want %q", tt.command, tt.args, got, tt.held)
		}
	}
}

// hookPolicy returns the policy for a hook.
func hookPolicy(t *testing.T, root string, h settings.Hook) *Policy {
	t.Helper()
	p, err := New(Config{Roots: []string{root}, Home: filepath.Dir(root), StateDir: filepath.Join(filepath.Dir(root), "state"), Hooks: true,
		Settings: &settings.Settings{Hooks: map[string][]settings.HookMatcher{settings.PostToolUse: {{Hooks: []settings.Hook{h}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestHookOutputs: a hook can write the logs outside of the workspace that its text names, and no other file.
func TestHookOutputs(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(base, "ws")
	makeHookWorkspace(t, root)
	if err := errors.Join(os.MkdirAll(filepath.Join(base, ".claude"), 0o755),
		os.MkdirAll(filepath.Join(base, ".ssh"), 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ command, want string }{
		{`jq -r '"\(.tool_input.command)"' >> ~/.claude/bash-command-log.txt`, ".claude/bash-command-log.txt"},
		{`jq . >> "$HOME/.claude/log"`, ".claude/log"},
		{`jq . >> "${HOME}"/.claude/log 2>>~/errors`, ".claude/log errors"},
		{`LOG=~/.claude/hooks.log; echo x >> $LOG`, ""},
		{`jq . >> logs/x.log; jq . > "$CLAUDE_PROJECT_DIR/x"`, ""},
		{"jq . >> ~/none/log", ""},
		{"echo x >/dev/null 2>/dev/stderr", ""},
		{"echo x >> ~/.claude/settings.json; echo x >> ~/.ssh/config; echo x > ~/state/x; echo x >> ~/.envrc", ""},
	} {
		var got []string
		for _, name := range hookPolicy(t, root, settings.Hook{Type: "command", Command: tt.command}).Commands().HookOutputs() {
			rel, err := filepath.Rel(base, name)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, rel)
		}
		if got := strings.Join(got, " "); got != tt.want {
			t.Errorf("%s can write %q, want %q", tt.command, got, tt.want)
		}
	}
}

// TestMayRunHook: a hook that runs outside of the sandbox runs a file of the workspace only as a person knows it.
func TestMayRunHook(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(base, "ws")
	makeHookWorkspace(t, root)
	h := settings.Hook{Type: "command", Command: "[ ! -x tools/late ] || tools/late; tools/guard; npm run lint",
		Uncontained: true}
	p := hookPolicy(t, root, h)
	if problems := p.Commands().CheckHostCommands(); len(problems) > 0 {
		t.Error(problems)
	}
	if err := p.Commands().MayRunHook(h); err != nil {
		t.Error(err)
	}
	if held, depends := p.HookFiles(h); len(held) != 1 || depends == nil ||
		!strings.Contains(depends.Error(), "npm loads files") {
		t.Errorf("it holds %q, %v", held, depends)
	}
	if err := os.WriteFile(filepath.Join(root, "tools/late"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := p.Commands().MayRunHook(h); err == nil || !strings.Contains(err.Error(), "toolhost trust") {
		t.Errorf("a planted file: %v", err)
	}
	h.Uncontained = false
	if err := p.Commands().MayRunHook(h); err != nil {
		t.Errorf("contained: %v", err)
	}
}
