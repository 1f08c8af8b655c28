//go:build unix

package guard

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"toolhost/guard/settings"
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
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
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
		{"tools/nested", nil, true, "tools/lib.sh tools/nested"},
		{"$CLAUDE_PROJECT_DIR/.claude/hooks/log.sh", nil, true, ".claude/hooks/log.sh"},
		{"python3 $CLAUDE_PROJECT_DIR/.claude/hooks/guard.py", nil, true, ".claude/hooks/guard.py"},
		{"python3 tools/guard.py", nil, false, "tools/guard.py"},
		{"python3 .claude/hooks/starts.py", nil, false, ".claude/hooks/starts.py"},
		{".claude/hooks/uv.py", nil, false, ".claude/hooks/uv.py"},
		{"node tools/guard.js", nil, false, "tools/guard.js"},
		{"tools/deep", nil, false, "tools/deep"},
		{"if [ -x tools/none ]; then tools/none; fi", nil, false, "tools/none"},
		{"go run main.go", nil, false, ""},
		{"gofmt -l . >>data.json", nil, false, ""},
		{"jq . data.json", nil, true, ""},
		{"cat main.go", nil, true, ""},
		{"node_modules/.bin/eslint .", nil, false, ""},
		{"/usr/bin/true main.go; ~/bin/x", nil, true, ""},
		{"echo '", nil, false, ""},
	} {
		p, run := hookPolicy(t, root, settings.Hook{Type: "command", Command: tt.command, Args: tt.args})
		var got []string
		for _, name := range p.core.hooks.files.Names {
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
func hookPolicy(t *testing.T, root string, h settings.Hook) (*Policy, HookRun) {
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
	for line := range strings.Lines(hookSpellings) {
		if _, run := hookPolicy(t, root, settings.Hook{Type: "command", Command: strings.TrimSpace(line)}); run.Outside {
			t.Errorf("runs outside, holding %q: %s", run.Held, line)
		}
	}
}

// hookSpellings run something of the workspace that is not held.
const hookSpellings = `sh < tools/guard
python3 < tools/guard.py
cat tools/guard | sh
cat tools/guard | bash -s -- x
bash <(cat tools/guard)
. <(cat tools/guard)
. /dev/stdin < tools/guard
sh /dev/stdin < tools/guard
bash /proc/self/fd/0 < tools/guard
eval "$(cat tools/guard)"
sh -c "$(cat tools/guard)"
"$(cat tools/guard)"
env -C tools ./guard
env --chdir=tools ./guard
pushd tools; ./guard
find tools -name 'gua*' -exec sh {} \;
find tools -name 'gua*' | xargs sh
find tools -execdir ./guard \;
find tools -exec {} \;
ls tools/guard | xargs -I{} sh -c {}
xargs -a tools/guard sh -c
for f in ./tools/gua*; do $f; done
for f in ./tools/gua*; do sh "$f"; done
./tools/gua*
sh tools/gua*
d=tools; "$d"/guard
run-parts tools
script -qc ./tools/guard
script -qc ./tools/guard /dev/null
BASH_ENV=tools/guard bash -c true
export BASH_ENV=tools/guard; bash -c true
ENV=tools/guard sh -i
env BASH_ENV=tools/guard bash -c true
sed -n -f tools/guard data.json
sed -nf tools/guard data.json
sed --file=tools/guard data.json
awk -f tools/guard data.json
awk "$(cat tools/guard)" data.json
python3 -m tools.guard
python3 -c 'import json'
python3 - <<<'import json'
cd tools && python3 -m guard
PYTHONPATH=tools python3 -I x.py
PYTHONPATH=tools /usr/bin/python3 ~/guard.py
env PYTHONPATH=tools python3 ~/guard.py
PATH=$PWD/tools:$PATH guard
PATH=tools:$PATH guard
PATH="$CLAUDE_PROJECT_DIR/tools:$PATH" guard
export PATH=$PATH:tools; guard
PATH+=:tools; guard
npm run lint
npx prettier --write .
yarn lint
make check
just check
jq -r .tool_input.file_path | xargs prettier --write
jq -r .tool_input.file_path | xargs -r gofmt -w
node -e 'require("x")'
node tools/guard.js
perl -I. tools/guard
perl tools/guard
ruby tools/guard
.venv/bin/black .
.venv/bin/python -c 1
git diff --quiet
git -c core.pager=tools/guard log
LD_PRELOAD=./tools/guard jq .
FOO=tools/guard some-program
env FOO=./tools/guard some-program
some-program --dir tools
some-program tools/*
cp tools/guard /tmp/g; /tmp/g
cat tools/guard > ~/g; sh ~/g
cat tools/guard > ~/g; ~/g
ln -sf "$CLAUDE_PROJECT_DIR/tools/guard" ~/g; ~/g
tee ~/g < tools/guard; . ~/g
ssh localhost sh < tools/guard
parallel ::: tools/guard
watch -n1 -x $f
tmux run-shell "$(cat tools/guard)"
tmux new -d "#(tools/guard)"
at now -f tools/guard
docker run --rm -v "$PWD:/w" alpine /w/tools/guard
tar cf /dev/null --to-command=tools/guard data.json
rsync -e tools/guard data.json x:
while read -r l; do $l; done < tools/guard
mapfile -t l < tools/guard; "${l[0]}"
source "$CLAUDE_PROJECT_DIR"/tools/*.sh
CLAUDE_PROJECT_DIR=tools; "$CLAUDE_PROJECT_DIR/guard"
uv run tools/guard.py
uv run --script .claude/hooks/guard.py
deno run tools/guard.js
java -jar tools/guard
java Guard
busybox sh < tools/guard
zsh tools/guard
fish tools/guard
gdb -x tools/guard
vim -S tools/guard
m4 tools/guard | sh
curl -s "file://$PWD/tools/guard" | sh
alias g=tools/guard; g
enable -f ./tools/guard x
hash -p tools/guard ls; ls
echo x > tools/out
jq -c . >> "$CLAUDE_PROJECT_DIR/logs/tools.log"
jq -c . | tee -a logs/tools.log
touch "$CLAUDE_PROJECT_DIR/.stamp"
sed -i s/a/b/ data.json
cd "$(jq -r .cwd)" && ./tools/guard
`

// TestHookHonest runs outside what commands cannot change: hooks as people publish them.
func TestHookHonest(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	makeHookWorkspace(t, root)
	for line := range strings.Lines(honestHooks) {
		if _, run := hookPolicy(t, root, settings.Hook{Type: "command", Command: strings.TrimSpace(line)}); !run.Outside {
			t.Errorf("is contained, since %s: %s", run.Why, line)
		} else if strings.Contains(strings.Join(run.Held, " "), "data.json") {
			t.Errorf("holds %q: %s", run.Held, line)
		}
	}
}

// honestHooks need what is outside: the network, the desktop, files of the home directory.
const honestHooks = `jq -r '"\(.tool_input.command) - \(.tool_input.description // "No description")"' >> ~/.claude/bash-command-log.txt
jq -r '.tool_input.command' >> "$HOME/.claude/log"
jq -c . >> "${HOME}/.claude/log"
cat >> /tmp/claude-hooks.jsonl
notify-send 'Claude Code' 'Awaiting your input'
notify-send "Claude Code" "$(jq -r .tool_name)"
osascript -e 'display notification "done" with title "Claude"'
afplay /System/Library/Sounds/Glass.aiff
paplay "$CLAUDE_PROJECT_DIR/.claude/done.wav" &
curl -fsS -m 5 -d "$(jq -r .tool_name)" https://ntfy.sh/topic >/dev/null
curl -s -X POST -H 'Content-Type: application/json' --data-binary @- https://hooks.example.com/x
input=$(cat); f=$(echo "$input" | jq -r '.tool_input.file_path // empty'); case "$f" in *.env|*/secrets/*) echo "no" >&2; exit 2;; esac
f=$(jq -r '.tool_input.file_path'); if [[ "$f" == *.lock ]]; then echo 'lock files are generated' >&2; exit 2; fi
if jq -e '.tool_input.command | test("rm -rf")' >/dev/null; then echo blocked >&2; exit 2; fi
jq -r .tool_input.command | grep -qE '^(sudo|rm -rf)' && { echo 'not allowed' >&2; exit 2; } || exit 0
if grep -q 'git push'; then echo "push by hand" >&2; exit 2; fi
echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}'
"$CLAUDE_PROJECT_DIR"/.claude/hooks/log.sh
$CLAUDE_PROJECT_DIR/.claude/hooks/log.sh --strict
bash "$CLAUDE_PROJECT_DIR/.claude/hooks/log.sh"
cd "$CLAUDE_PROJECT_DIR" && ./.claude/hooks/log.sh
python3 "$CLAUDE_PROJECT_DIR/.claude/hooks/guard.py"
python3 ~/.claude/hooks/guard.py
node ~/.claude/hooks/guard.js
~/.claude/hooks/check.sh "$(jq -r .tool_input.file_path)"
timeout 5 ~/.claude/hooks/check.sh
/usr/local/bin/company-guard --policy /etc/company/policy.yml
logger -t claude "$(jq -c .)"
tmux display-message 'Claude is done'
printf '\a'
exit 0
true
[ -f package.json ] && echo ok
test -f data.json && echo found
command -v notify-send >/dev/null 2>&1 && notify-send Claude done || true
LOG=~/.claude/hooks.log; echo "$(date) $(jq -r .tool_name)" >> $LOG
LOG_DIR="$HOME/.claude/logs"; mkdir -p "$LOG_DIR"; jq -c . >> "$LOG_DIR/pre.jsonl"
LC_ALL=C date +%s >> ~/.claude/times
export PATH="$HOME/.local/bin:/opt/homebrew/bin:$PATH"; jq .
sleep 1; echo "{}"
awk -F: '{print $1}' /etc/passwd | head -1 >/dev/null
sed -n 's/x/y/p' | wc -l
`
