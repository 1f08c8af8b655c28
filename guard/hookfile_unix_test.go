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
	"tools/guard":               "#!/bin/sh\nexit 0\n",
	"tools/nested":              "#!/bin/bash\n. \"$(dirname \"$0\")/lib.sh\"\n",
	"tools/lib.sh":              "say() { echo \"$1\"; }\n",
	"tools/deep":                "#!/bin/bash\nset -euo pipefail\nnpm run lint\n",
	"tools/guard.py":            "import json, sys\njson.load(sys.stdin)\n",
	"tools/guard.js":            "require('./lib')\n",
	"data.json":                 "{}\n",
	".git/guard.py":             "\n",
	"tools/pyenv":               "#!ROOT/.venv/bin/python\n",
	"main.go":                   "package main\n",
	".claude/hooks/guard.py":    "import json, sys\n\nif __name__ == \"__main__\":\n    print('ok \u2705', file=sys.stderr)\n",
	".claude/hooks/starts.py":   "import subprocess\nsubprocess.run(['npm', 'test'])\n",
	".claude/hooks/uv.py":       "#!/usr/bin/env -S uv run --script\nimport sys\n",
	".claude/hooks/log.sh":      "#!/usr/bin/env bash\nLOG=\"$HOME/.claude/hooks.log\"\nmkdir -p \"$(dirname \"$LOG\")\"\ninput=$(cat)\ntool=$(echo \"$input\" | jq -r '.tool_name')\necho \"$(date) $tool\" >> \"$LOG\"\nexit 0\n",
	"node_modules/.bin/eslint":  "#!/bin/sh\n",
	".venv/bin/black":           "#!/bin/sh\n",
	"scripts/nested/deeper.txt": "",
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
	if err := errors.Join(os.Symlink("tools", filepath.Join(root, "linked")), os.WriteFile(filepath.Join(root, "tools/twice"), nil, 0o755),
		os.Link(filepath.Join(root, "tools/twice"), filepath.Join(root, "twice"))); err != nil {
		t.Fatal(err)
	}
}

// TestHookFiles finds what hooks run of the workspace, and which of them can run outside of a sandbox.
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
		outside bool
		held    string
	}{
		{"tools/guard", nil, true, "tools/guard"},
		{`"${CLAUDE_PROJECT_DIR}/tools/guard" x`, nil, true, "tools/guard"},
		{"${CLAUDE_PROJECT_DIR}/tools/guard", []string{"x"}, true, "tools/guard"},
		{"${CLAUDE_PROJECT_DIR:-.}/tools/guard", nil, true, "tools/guard"},
		{"sh -c 'tools/guard; true'", nil, true, "tools/guard"},
		{`cd "$CLAUDE_PROJECT_DIR"/tools && ./guard`, nil, true, "tools/guard"},
		{`cd tools && python3 -I guard.py`, nil, true, "tools/guard.py"},
		{`cd "$CLAUDE_PROJECT_DIR"/tools && python3 -I guard.py`, nil, true, "tools/guard.py"},
		{"python3", []string{"-I", "${CLAUDE_PROJECT_DIR}/tools/guard.py", "data.json"}, true, "data.json tools/guard.py"},
		{"tools/guard --config=data.json", nil, true, "data.json tools/guard"},
		{"tools/guard <data.json", nil, true, "data.json tools/guard"},
		{"f=tools/guard; $f", nil, true, "tools/guard"},
		{"d=tools; \"$d\"/guard", nil, true, "tools/guard"},
		{"d=tools; \"$d\"/guard; d=scripts", nil, false, "scripts/guard tools/guard"},
		{"tools/nested", nil, true, "tools/lib.sh tools/nested"},
		{"$CLAUDE_PROJECT_DIR/.claude/hooks/log.sh", nil, true, ".claude/hooks/log.sh"},
		{"python3 $CLAUDE_PROJECT_DIR/.claude/hooks/guard.py", nil, true, ".claude/hooks .claude/hooks/guard.py"},
		{`jq -c . >> "$CLAUDE_PROJECT_DIR/.claude/log"`, nil, true, ".claude"},
		{"tools/guard .claude/hooks", nil, true, ".claude/hooks tools/guard"},
		{"tmp=$(mktemp); cat > \"$tmp\"; ~/check \"$tmp\"", nil, true, ""},
		{"tmp=$(mktemp); cat > \"$tmp\"; sh \"$tmp\"", nil, false, ""},
		{"python3 .git/guard.py", nil, false, ".git/guard.py"},
		{"tools/pyenv", nil, false, "tools/pyenv"},
		{"linked/guard", nil, false, "linked/guard tools/guard"},
		{"tools/twice", nil, false, "tools/twice"},
		{"python3 tools/guard.py", nil, false, "tools/guard.py"},
		{"python3 .claude/hooks/starts.py", nil, false, ".claude/hooks/starts.py"},
		{".claude/hooks/uv.py", nil, false, ".claude/hooks/uv.py"},
		{"node tools/guard.js", nil, false, "tools/guard.js"},
		{"tools/deep", nil, false, "tools/deep"},
		{"if [ -x tools/none ]; then tools/none; fi", nil, false, "tools/none"},
		{"go run main.go", nil, false, ""},
		{"gofmt -l . >>data.json", nil, false, ""},
		{"jq . data.json", nil, true, ""},
		{"jq -f tools/guard", nil, true, "tools/guard"},
		{"jq -L tools 'import \"x\" as x; .'", nil, false, ""},
		{"bash -c '. tools/lib.sh; say x'", nil, true, "tools/lib.sh"},
		{"bash -c 'bash tools/lib.sh'", nil, true, "tools/lib.sh"},
		{"sh -c \"bash -c 'sh tools/lib.sh'\"", nil, true, "tools/lib.sh"},
		{"cat main.go", nil, true, ""},
		{"node_modules/.bin/eslint .", nil, false, ""},
		{"/usr/bin/true main.go; ~/bin/x", nil, true, ""},
		{"echo '", nil, false, ""},
	} {
		p, run := hookPolicy(t, root, settings.Hook{Type: "command", Command: tt.command, Args: tt.args})
		var got []string
		for _, name := range p.data.hooks.files.Names {
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
		if run.Outside != tt.outside {
			t.Errorf("%s %q runs outside: %v, want %v (%s)", tt.command, tt.args, run.Outside, tt.outside, run.Why)
		}
	}
}

// hookPolicy returns the policy for a hook, and how this runs.
func hookPolicy(t *testing.T, root string, h settings.Hook) (*Policy, hookRun) {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(Config{Roots: []string{root}, Home: home, Settings: &settings.Settings{Hooks: map[string][]settings.HookMatcher{
		settings.PostToolUse: {{Hooks: []settings.Hook{h}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return p, p.HookRun(h)
}

// TestHookContained contains what may run a file that is not held, in every spelling.
func TestHookContained(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	makeHookWorkspace(t, root)
	for _, line := range hookLines(t, "contained.txt") {
		if _, run := hookPolicy(t, root, settings.Hook{Type: "command", Command: line}); run.Outside {
			t.Errorf("runs outside, holding %q: %s", run.Held, line)
		}
	}
}

// TestHookHonest runs outside what commands cannot change: hooks as people publish them.
func TestHookHonest(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	makeHookWorkspace(t, root)
	for _, line := range hookLines(t, "outside.txt") {
		if _, run := hookPolicy(t, root, settings.Hook{Type: "command", Command: line}); !run.Outside {
			t.Errorf("is contained, since %s: %s", run.Why, line)
		} else if strings.Contains(strings.Join(run.Held, " "), "data.json") {
			t.Errorf("holds %q: %s", run.Held, line)
		}
	}
}

// hookLines returns the hooks of a table, one a line.
func hookLines(t *testing.T, name string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "integration", "attack", "testdata", "hooks", name))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			lines = append(lines, line)
		}
	}
	return lines
}
