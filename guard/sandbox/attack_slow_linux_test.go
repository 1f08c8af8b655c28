//go:build slow

package sandbox

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAttacksAreReal runs the attacks without a sandbox, each in a fixture of
// its own: a script that never succeeds proves nothing.
func TestAttacksAreReal(t *testing.T) {
	slow(t)
	for _, a := range attacks {
		if !a.real {
			continue
		}
		t.Run(a.name, func(t *testing.T) {
			f := newFixture(t)
			f.serve(t)
			f.lend(t)
			before := f.snapshot(t)
			cmd := exec.Command("/bin/bash", "-c", a.script)
			cmd.Dir, cmd.Env = f.ws, f.env
			out, _ := cmd.CombinedOutput()
			changed := cmp.Diff(before, f.snapshot(t)) != ""
			if !strings.Contains(string(out), secret) && !strings.Contains(string(out), breach) && !changed {
				t.Errorf("does nothing even without a sandbox:\n%s", out)
			}
		})
	}
}

// ordinaryUser is who the tests run as a second time.
const ordinaryUser = 65534

// TestAsOrdinaryUser runs the tests of this package as a user without any
// privilege, from a place that user can reach.
func TestAsOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("runs as an ordinary user already")
	}
	dir, err := os.MkdirTemp("", "user")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "sandbox.test")
	if err := copyFile(binary, "/proc/self/exe"); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, ordinaryUser, ordinaryUser); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "-test.v", "-test.short", "-test.timeout=8m",
		"-test.skip=Profile$|AreReal|Network|Proxy|PolicyErrors") // some need files next to the source, others no second time
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), backendsVariable+"="+userBackends(), "TMPDIR="+dir, "HOME="+dir, "GOCACHE="+
		dir+"/cache")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinaryUser, Gid: ordinaryUser}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("as user %d: %v", ordinaryUser, err)
	}
	for line := range strings.Lines(string(out)) {
		if err != nil && !strings.Contains(line, "=== RUN") && !strings.Contains(line, "PASS") ||
			strings.Contains(line, "SKIP") {
			t.Log(strings.TrimRight(line, "\n"))
		}
	}
}

// userBackends leaves out, with the race detector, those that start ourselves
// for every command.
func userBackends() string {
	if raceEnabled {
		return string(Namespaces)
	}
	return os.Getenv(backendsVariable)
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Close()
}
