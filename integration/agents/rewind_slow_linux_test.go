//go:build slow

package agents

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// TestRewindOneCall: the command of a single call starts when its workspace has been read, so that all it changes can be taken back.
func TestRewindOneCall(t *testing.T) {
	home := host.DoctorHome(t)
	work := filepath.Join(home, "work")
	for d := range 40 {
		for f := range 200 {
			host.WriteIn(t, home, fmt.Sprintf("work/%d/%d", d, f), strings.Repeat("x", 2048))
		}
	}
	t.Chdir(work)
	out, code := host.RunCommand(t, home, "call", "Bash", `{"command":"mv 39 40; echo 2 >40/199; rm -r 38"}`)
	if code != 0 || strings.Contains(out, "had been read") {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	if out, code := host.RunCommand(t, home, "undo", "--yes"); code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	for _, dir := range []string{"38", "39"} {
		if all, err := os.ReadDir(dir); err != nil || len(all) != 200 {
			t.Errorf("%s has %d files, %v", dir, len(all), err)
		}
	}
	if got, err := os.ReadFile("39/199"); err != nil || len(got) != 2048 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestHistoryOff: the user can switch the history of commands off, a workspace cannot.
func TestHistoryOff(t *testing.T) {
	const off = `{"history":{"commands":"off"}}`
	for file, recorded := range map[string]bool{"config/toolhost/toolhost.json": false, ".claude/settings.json": false,
		"work/.claude/settings.json": true} {
		home := host.DoctorHome(t)
		host.WriteIn(t, home, file, off)
		t.Chdir(filepath.Join(home, "work"))
		out, code := host.RunCommand(t, home, "call", "Bash", `{"command":"echo 1 >made"}`)
		if code != 0 || strings.Contains(out, "[changed 1 file: made]") != recorded {
			t.Errorf("%s: exit code %d\n%s", file, code, out)
		}
		if out, _ := host.RunCommand(t, home, "history", "--json"); strings.Contains(out, "echo 1") != recorded {
			t.Errorf("%s: the history is %s", file, out)
		}
	}
}
