package scripts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// The doctor starts the binary over both transports and speaks to it in both eras.
func TestDoctor(t *testing.T) {
	home := host.DoctorHome(t)
	all, code := host.Doctor(t, home)
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
	for _, what := range []string{"root", "rules", "sandbox", "shell", "state", "audit", "tools", "client"} {
		if len(host.About(all, what)) == 0 {
			t.Errorf("there is no line about %s", what)
		}
	}
	var spoken []string
	for _, f := range host.About(all, "protocol") {
		before, _, _ := strings.Cut(f.Text, ":")
		spoken = append(spoken, before)
	}
	want := []string{"stdio, revision 2026-07-28", "stdio, revision 2025-11-25", "http, revision 2026-07-28",
		"http, revision 2025-11-25"}
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
	home := host.DoctorHome(t)
	login := filepath.Join(home, ".codex/auth.json")
	host.Must(t, os.MkdirAll(filepath.Dir(login), 0o700))
	host.Must(t, os.MkdirAll(filepath.Join(home, ".qwen"), 0o700)) // without a login
	host.Must(t, os.WriteFile(login, []byte("{}"), 0o600))
	all, _ := host.Doctor(t, home, "--quick")
	var said []string
	for _, f := range host.About(all, "client") {
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
	home := host.DoctorHome(t)
	settings := filepath.Join(home, ".claude", "settings.json")
	if err := os.MkdirAll(filepath.Dir(settings), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(settings, []byte("{ broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	all, code := host.Doctor(t, home)
	if code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	rules := host.About(all, "rules")
	if len(rules) != 1 || rules[0].Level != "fail" || !strings.Contains(rules[0].Text, settings) {
		t.Errorf("the rules are told as %v", rules)
	}
	for _, f := range host.About(all, "protocol") {
		if f.Level != "fail" || f.Remedy == "" {
			t.Errorf("a host that refuses every call is told as %v", f)
		}
	}
}
