//go:build unix

package guard

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/guard/settings"
)

// gitWorkspace is a workspace with a repository, and what judges a command in it in plan mode.
func gitWorkspace(t *testing.T, set *settings.Settings) (ws string, judge func(command string) Verdict) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	ws = realTemp(t)
	set.DefaultMode, set.Sandbox.OnUnavailable = settings.ModePlan, settings.OnFailureAllow
	p := policy(t, ws, set, uncontained)
	gitShell(t, ws, "git init -q . && echo a > a && git add a && git -c user.name=t -c user.email=t@e commit -q -m a")
	return ws, func(command string) Verdict {
		return p.Judge(Intent{Tool: "Bash", Effects: []Effect{Exec{Text: command, Dir: resolve(t, p, ".")}}})
	}
}

func gitShell(t *testing.T, dir, script string, env ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), append(env, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// A line that only reads, git included, begins with what keeps git from running programs; any other line does not.
func TestGitPrelude(t *testing.T) {
	_, judge := gitWorkspace(t, &settings.Settings{})
	for command, want := range map[string]bool{
		"git status": true, "git log | head -3": true, "cat a; git diff": true, "timeout 5 git status": true, "for f in *; do git log -- $f; done": true,
		"ls": false, "cat git": false, "git status; make": false, "git commit -m x": false, "git status; git config -l": false, "git var GIT_EDITOR": false,
		"git rev-parse --git-path hooks": false, "git rev-parse HEAD": true,
	} {
		v := judge(command)
		if got := v.Prelude != ""; got != want || strings.Contains(v.Prelude, "\n") {
			t.Errorf("%s: %v, %q", command, v.Action, v.Prelude)
		}
		if want && v.Action != Allow {
			t.Errorf("%s: %s", command, v.Error())
		}
	}
}

// TestGitPreludeHolds changes the repository after the verdict, so that the look at it has missed everything.
func TestGitPreludeHolds(t *testing.T) {
	for _, tt := range []struct{ name, plant, command string }{
		{"fsmonitor", `git config core.fsmonitor "$P"`, "git status"},
		{"hook", `ln -sf "$P" .git/hooks/post-index-change; touch -d 2001-01-01 a`, "git status"},
		{"hooks elsewhere", `mkdir h; ln -s "$P" h/post-index-change; git config core.hooksPath h; touch -d 2001-01-01 a`, "git status"},
		{"bare", `mkdir b; mv .git/* b; mv b/* .; rm -r .git b; printf '[diff "x"]\n\ttextconv = %s\n' "$P" > config; mkdir -p info; echo 'a diff=x' > info/attributes`, "git show HEAD"},
		{"a submodule", `git init -q s; git -C s -c user.name=t -c user.email=t@e commit -q --allow-empty -m s; git add s; git -C s config core.fsmonitor "$P"`, "git status"},
		{"promisor", `git config extensions.partialClone o; git config core.repositoryFormatVersion 1; git config remote.o.url "$PWD"; git config remote.o.uploadpack "$P"; rm -f .git/objects/*/$(git rev-parse HEAD:a | cut -c3-)`, "git show HEAD:a"},
		{"promisor by a protocol that is allowed", `git config remote.o.promisor true; git config remote.o.url "ext::$P"; git config protocol.ext.allow always; rm -f .git/objects/*/$(git rev-parse HEAD:a | cut -c3-)`, "git show HEAD:a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ws, judge := gitWorkspace(t, &settings.Settings{})
			v := judge(tt.command)
			if v.Action != Allow {
				t.Fatal(v.Error())
			}
			mark := filepath.Join(ws, "ran")
			program := filepath.Join(realTemp(t), "program")
			if err := os.WriteFile(program, []byte("#!/bin/sh\ntouch "+mark+"\nexit 1\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			if out, err := gitShell(t, ws, "set -e; "+tt.plant, "P="+program); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			out, _ := gitShell(t, ws, v.Prelude+tt.command)
			if _, err := os.Lstat(mark); err == nil {
				t.Errorf("the program ran:\n%s", out)
			}
			out, _ = gitShell(t, ws, "touch -d 2002-01-01 a; "+tt.command)
			if _, err := os.Lstat(mark); err != nil {
				t.Errorf("the program does not run without it:\n%s", out)
			}
		})
	}
}

// What the user's environment has for git stays, and git that is led elsewhere is not one that only reads.
func TestGitEnvironment(t *testing.T) {
	ws, judge := gitWorkspace(t, &settings.Settings{})
	v := judge("git status")
	out, err := gitShell(t, ws, v.Prelude+"git config --get-regexp '^(a\\.b|core\\.fsmonitor|safe)'", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=a.b", "GIT_CONFIG_VALUE_0=own")
	for _, want := range []string{"a.b own\n", "core.fsmonitor false\n", "safe.barerepository explicit\n"} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%v, no %q in\n%s", err, want, out)
		}
	}
	_, led := gitWorkspace(t, &settings.Settings{Env: map[string]string{"GIT_DIR": "x"}})
	if v := led("git status"); v.Action != Deny {
		t.Errorf("with a GIT_DIR of the settings: %v", v.Action)
	}
	t.Setenv("GIT_WORK_TREE", "x")
	if v := judge("git status"); v.Action != Deny {
		t.Errorf("with a GIT_WORK_TREE of the user's: %v", v.Action)
	}
}
