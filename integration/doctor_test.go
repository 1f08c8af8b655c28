package integration

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A finding is a line of toolhost doctor.
type finding struct{ Level, About, Text, Remedy string }

// doctor runs toolhost doctor and returns its lines and exit code.
func doctor(t *testing.T, home string, flags ...string) ([]finding, int) {
	t.Helper()
	cmd := exec.Command(binary, append([]string{"doctor", "--json"}, flags...)...)
	cmd.Dir, cmd.Env = filepath.Join(home, "work"), append(cleanEnv(home), "TMPDIR="+filepath.Join(home, "tmp"))
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	var all []finding
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatalf("%v\n%s%s", err, out, &complaint)
	}
	return all, code
}

// runCommand runs the binary without input and returns what it prints, and its exit code.
func runCommand(t *testing.T, home string, args ...string) (string, int) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Env = filepath.Join(home, "work"), cleanEnv(home)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return string(out), exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(out), 0
}

func about(all []finding, what string) (found []finding) {
	for _, f := range all {
		if f.About == what {
			found = append(found, f)
		}
	}
	return found
}

// doctorHome is a home directory with a workspace "work".
func doctorHome(t *testing.T) string {
	t.Helper()
	home := tempDir(t)
	for _, name := range []string{"work", "tmp"} {
		if err := os.Mkdir(filepath.Join(home, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

// The doctor starts the binary over both transports and speaks to it in both eras.
func TestDoctor(t *testing.T) {
	home := doctorHome(t)
	all, code := doctor(t, home)
	for _, f := range all {
		if f.Level == "fail" {
			t.Errorf("%s: %s", f.About, f.Text)
		}
		if f.Level != "ok" && f.Remedy == "" {
			t.Errorf("%s says %q and no remedy", f.About, f.Text)
		}
	}
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, what := range []string{"root", "rules", "sandbox", "shell", "search", "state", "audit", "tools", "client"} {
		if len(about(all, what)) == 0 {
			t.Errorf("there is no line about %s", what)
		}
	}
	var spoken []string
	for _, f := range about(all, "protocol") {
		before, _, _ := strings.Cut(f.Text, ":")
		spoken = append(spoken, before)
	}
	want := []string{"stdio, revision 2026-07-28", "stdio, revision 2025-11-25", "http, revision 2026-07-28", "http, revision 2025-11-25"}
	if !slices.Equal(spoken, want) {
		t.Errorf("spoken: %q, want %q", spoken, want)
	}
	if left, _ := filepath.Glob(filepath.Join(home, "tmp", "toolhost-doctor-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// The doctor names what toolhost run opens for the clients that are here.
func TestDoctorLogins(t *testing.T) {
	t.Parallel()
	home := doctorHome(t)
	login := filepath.Join(home, ".codex/auth.json")
	must(t, os.MkdirAll(filepath.Dir(login), 0o700))
	must(t, os.MkdirAll(filepath.Join(home, ".qwen"), 0o700)) // without a login
	must(t, os.WriteFile(login, []byte("{}"), 0o600))
	all, _ := doctor(t, home, "--quick")
	var said []string
	for _, f := range about(all, "client") {
		if strings.Contains(f.Text, "toolhost run") {
			said = append(said, f.Text)
		}
	}
	if want := []string{"Codex: in toolhost run it reads its login: " + login}; !slices.Equal(said, want) {
		t.Errorf("it says %q, want %q", said, want)
	}
}

// A settings file that refuses every call makes the doctor fail, and so does the conversation with a host under it.
func TestDoctorFails(t *testing.T) {
	home := doctorHome(t)
	settings := filepath.Join(home, ".claude", "settings.json")
	if err := os.MkdirAll(filepath.Dir(settings), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(settings, []byte("{ broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	all, code := doctor(t, home)
	if code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	rules := about(all, "rules")
	if len(rules) != 1 || rules[0].Level != "fail" || !strings.Contains(rules[0].Text, settings) {
		t.Errorf("the rules are told as %v", rules)
	}
	for _, f := range about(all, "protocol") {
		if f.Level != "fail" || f.Remedy == "" {
			t.Errorf("a host that refuses every call is told as %v", f)
		}
	}
}
