package attack

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// protectedFiles are what a workspace holds that commands must not change.
var protectedFiles = map[string]string{".git/hooks/pre-commit": "#!/bin/sh\n", ".claude/settings.json": "{}",
	".env": "SECRET=VALUE\n"}

// protectedWorkspace makes a workspace with them, in a directory that is not.
func protectedWorkspace(t *testing.T) (dir, ws string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(host.TempDir(t))
	if err != nil {
		t.Fatal(err)
	}
	ws = filepath.Join(dir, "ws")
	for name, text := range protectedFiles {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(ws, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(ws, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir, ws
}

// TestLandlock runs commands where Landlock is all that holds them: in the workspace they work, with what is protected in it, which
// Landlock cannot hold, they are asked about, and rules on files refuse them.
func TestLandlock(t *testing.T) {
	t.Parallel()
	as := host.WithoutNamespaces(t)
	doctor := exec.Command(host.Binary, "doctor", "--quick", "--root", host.TempDir(t))
	as(doctor)
	doctor.Env = host.CleanEnv(host.TempDir(t))
	if out, _ := doctor.CombinedOutput(); !strings.Contains(string(out), "landlock: writes stay in the workspace") {
		t.Skipf("Landlock does not hold commands here:\n%s", out)
	}
	controlBackend{name: "control", plain: true, through: as}.attack(t, 2*samples.Step(1))
	for _, tt := range []struct {
		transport string
		flags     []string
		calls     [][3]string // a command, what its answer says, and what it does not
	}{
		{"stdio", nil, [][3]string{
			{"echo hi; touch made", "hi\n", "denied"},
			{"cat made; git init -q sub; ls -A sub", ".git", "This is said once"},
			{"echo new > ../beside.txt", "Permission denied", "said once"},
			{"setsid -f sleep 600; echo started", "was ended", "said once"},
			{"echo x >> .git/hooks/pre-commit", "protected path", "cannot start its sandbox"},
			{"echo {} > .claude/settings.json", "can never be written", "cannot start its sandbox"},
		}},
		{"stdio", []string{"--deny", "Read(.env)"}, [][3]string{
			{"cat made", "nothing keeps this command from them", "cannot start its sandbox"},
			{"grep -r SECRET", "nothing keeps this command from them", "VALUE"},
		}},
		{"http", []string{"--allow", "Bash(echo:*)"}, [][3]string{
			{"echo hi", "hi\n", "denied"},
			{"make all", "this client cannot ask one", "cannot start its sandbox"},
		}},
	} {
		t.Run(strings.Join(append([]string{tt.transport}, tt.flags...), " "), func(t *testing.T) {
			dir, ws := protectedWorkspace(t)
			ctx, cancel := context.WithTimeout(t.Context(), host.Patience)
			defer cancel()
			h, err := host.StartHostAs(ctx, as, host.Setting{Transport: tt.transport, Era: client.Modern}, ws,
				host.CleanEnv(filepath.Join(dir, "home")), tt.flags...)
			if err != nil {
				t.Fatal(err)
			}
			for i, c := range tt.calls {
				r, err := h.Call(ctx, "Bash", `{"command":`+quoted(t, c[0])+`}`)
				if err != nil {
					t.Fatal(err)
				}
				if text := r.Text(); !strings.Contains(text, c[1]) || strings.Contains(text, c[2]) {
					t.Errorf("%s: %q, want %q and not %q", c[0], text, c[1], c[2])
				} else if first := i == 0 && tt.transport == "stdio" && !r.IsError; first &&
					!strings.Contains(text, "cannot keep them from protected files") {
					t.Errorf("what is not held is not said: %q", text)
				}
			}
			if err := h.Stop(); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(filepath.Join(dir, "beside.txt")); err == nil {
				t.Error("a command wrote beside the workspace")
			}
			for name, want := range protectedFiles {
				if got, err := os.ReadFile(filepath.Join(ws, name)); err != nil || string(got) != want {
					t.Errorf("%s is %q now: %v", name, got, err)
				}
			}
		})
	}
}
