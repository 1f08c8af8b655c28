//go:build unix

package guard

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/guard/settings"
)

// attackProfiles are the rules and the containment of the hosts that integration/attack runs its rows on.
var attackProfiles = map[string]struct {
	rules   string
	contain func(*Config)
}{
	"rules":       {"deny Read(.env)\ndeny Read(secrets/**)\ndeny Edit(locked/**)\ndeny Bash(rm:*)\ndeny Bash(curl:*)", contained},
	"kernel":      {"deny Read(.env)\ndeny Read(secrets/**)\ndeny Edit(locked/**)", contained},
	"uncontained": {"deny Read(.env)\ndeny Read(secrets/**)\ndeny Edit(locked/**)", uncontained},
	"asking":      {"ask Read(.env)\nask Read(hard*)\nask Read(secrets/**)", contained},
	"frozen":      {"deny Edit", contained},
	"frozenbelow": {"deny Edit(**)", contained},
	"late":        {"deny Edit(*.lock)\ndeny Edit(/generated/**)", contained},
	"words": {"deny Bash(chmod 777:*)\ndeny Bash(git tag -d:*)\ndeny Bash(*--no-verify*)\ndeny Bash(dd of=*)\n" +
		"deny Bash(python3 -m venv:*)", contained},
	"flags": {"deny Bash(chmod -R *)\ndeny Bash(git push --force *)\ndeny Bash(cp -rf *)\ndeny Bash(rm -rf*)\n" +
		"deny Bash(*shred -uz*)\ndeny Bash(git push --force*)", contained},
	"plan": {"mode plan", uncontained},
	"allowed": {"mode default\n" + allowEach("git cp mv ln mkdir install dd tar zip unzip openssl gcc go curl split tee printf"),
		uncontained},
}

// allowEach returns a rule for each of the programs.
func allowEach(programs string) string {
	var b strings.Builder
	for _, name := range strings.Fields(programs) {
		b.WriteString("allow Bash(" + name + ":*)\n")
	}
	return b.String()
}

// attackedTree makes the workspace that the commands are about, as integration/attack does.
func attackedTree(t *testing.T) (ws string) {
	t.Helper()
	top := realTemp(t)
	ws = filepath.Join(top, "ws")
	tree(t, top, "home/.ssh/id_rsa", "home/.claude/settings.json", "home/.bashrc", "outside/outside.txt",
		"ws-evil/twin.txt",
		"ws/.env", "ws/.env.example", "ws/secrets/zebra9f3.key", "ws/secrets/deep/other.txt", "ws/locked/a.txt", "ws/keep.txt", "ws/names.txt",
		"ws/README.md", "ws/environment.md", "ws/package.json", "ws/src/main.go", "ws/src/other.go", "ws/.gitignore", "ws/ignored/x.txt",
		"ws/.claude/settings.json", "ws/.mcp.json", "ws/.git/config", "ws/.git/hooks/", "ws/link -> .env", "ws/linkdir -> secrets",
		"ws/chain3 -> chain2", "ws/chain2 -> chain1", "ws/chain1 -> .env", "ws/out -> ../outside", "ws/loop -> loop", "ws/lockedlink -> locked",
		"ws/dangling -> ../outside/made.txt", "ws/danglingdir -> ../outside/madedir", "ws/zero -> /dev/zero", "ws/null -> /dev/null",
		"ws/hard.txt = ws/.env", "ws/hardlinks/two.txt = ws/secrets/zebra9f3.key", "ws/hardlocked.txt = ws/locked/a.txt", "ws/src/outside.txt -> ../../outside/outside.txt")
	patch := "--- /dev/null\n+++ b/src/.envrc\n@@ -0,0 +1 @@\n+pwned\n"
	if err := os.WriteFile(filepath.Join(ws, "x.diff"), []byte(patch), 0o644); err != nil {
		t.Fatal(err)
	}
	return ws
}

// TestAttacks judges every command of integration/attack that must be refused, as where no exec gate holds programs when they start: none
// of it runs. integration/attack sends them through a host.
func TestAttacks(t *testing.T) {
	files, err := filepath.Glob("../integration/attack/testdata/attacks/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no attacks: %v", err)
	}
	policies := map[string]*Policy{}
	for name, profile := range attackProfiles {
		ws := attackedTree(t)
		set := testRules(ws, profile.rules)
		if name == "plan" || name == "allowed" {
			set.Sandbox.OnUnavailable = settings.OnFailureAllow
		}
		set.Sandbox.Enabled = name != "uncontained"
		policies[name] = policy(t, ws, set, profile.contain)
	}
	judged := 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var profiles []string
		for line := range strings.Lines(string(raw)) {
			word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			if word == "in" {
				profiles = strings.Fields(rest)
			}
			tool, command, _ := strings.Cut(rest, " ")
			if word != "refused" || tool != "bash" && tool != "Bash" || strings.Contains(command, "$REPEAT") {
				continue
			}
			var in struct {
				Command                   string
				DangerouslyDisableSandbox bool
			}
			if tool == "Bash" {
				if err := json.Unmarshal([]byte(command), &in); err != nil {
					t.Fatal(err)
				}
				command = in.Command
			}
			for _, name := range profiles {
				p := policies[name]
				if p == nil {
					continue
				}
				judged++
				v := p.Judge(Intent{Tool: "Bash", Effects: []Effect{Exec{Text: command, Dir: resolve(t, p, "."), Unsandboxed: in.DangerouslyDisableSandbox}}})
				if v.Action == Allow {
					t.Errorf("%s in %s: %s", filepath.Base(file), name, command)
				}
			}
		}
	}
	t.Logf("%d commands were judged", judged)
}
