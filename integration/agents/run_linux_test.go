package agents

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// newRunner is host.NewRunner for this package.
func newRunner(t *testing.T) person { return person{host.NewRunner(t)} }

// TestRunWorks has a client do what it may, and looks at what is left.
func TestRunWorks(t *testing.T) {
	t.Parallel()
	p := newRunner(t)
	mark := fmt.Sprintf("10%d", os.Getpid())
	temp := []string{"TMP=" + p.Home, "TEMP=" + p.Home, "TMPDIR=" + p.Home} // which it cannot write
	if out, _ := p.Run(t, temp, host.Binary, "run", "--", "env"); strings.Count("\n"+out, "\nTMPDIR=") != 1 ||
		strings.Contains("\n"+out, "\nTMPDIR="+p.Home+"\n") {
		t.Errorf("programs that take the first of two values have another TMPDIR:\n%s", out)
	}
	out, ok := p.Run(t, temp, host.Binary, "run", "--", "bash", "-c",
		"echo $((6*7)) > ${TEMP:-${TMP:-$TMPDIR}}/x && cat $TMPDIR/x; echo new > new.txt; mkdir -p ~/.config; (setsid sleep "+mark+" >/dev/null 2>&1 &); exit 7")
	if ok || !strings.Contains(out, "42") || !strings.Contains(out, "1 process still ran") ||
		!strings.Contains(out, "new.txt") {
		t.Errorf("it says\n%s", out)
	}
	if found, _ := exec.Command("pgrep", "-f", "sleep "+mark).Output(); len(found) > 0 {
		t.Errorf("a daemon is left: %s", found)
	}
	if left, _ := filepath.Glob(filepath.Join(p.Home, ".cache/toolhost/cell-*")); len(left) > 0 {
		t.Errorf("directories are left: %s", left)
	}
	history, _ := p.Run(t, nil, host.Binary, "history")
	if !strings.Contains(history, "run: bash") {
		t.Errorf("the history does not show it:\n%s", history)
	}
	if out, ok := p.Run(t, nil, host.Binary, "undo", "--yes", strings.Fields(history)[0]); !ok {
		t.Errorf("undo: %s", out)
	}
	if _, err := os.Stat(filepath.Join(p.Project, "new.txt")); err == nil {
		t.Error("what the run made was not taken back")
	}
	audit, err := os.ReadFile(filepath.Join(p.Home, "state/toolhost/audit.jsonl"))
	if err != nil || !strings.Contains(string(audit), `"tool":"run: bash"`) {
		t.Errorf("the audit log does not show it: %s, %v", audit, err)
	}
}

// TestRunWeaker runs a client where the sandbox does not hold everything only if it is told to, and says what is missing.
func TestRunWeaker(t *testing.T) {
	t.Parallel()
	as := host.WithoutNamespaces(t)
	p := newPerson(t)
	run := func(args ...string) (out string, code int) {
		cmd := exec.Command(host.Binary, append([]string{"run"}, args...)...)
		as(cmd)
		cmd.Dir, cmd.Env = p.Project, host.CleanEnv(p.Home)
		said, _ := cmd.CombinedOutput()
		return string(said), cmd.ProcessState.ExitCode()
	}
	out, code := run("--", "sh", "-c", "echo ran > ran")
	if _, err := os.Stat(filepath.Join(p.Project, "ran")); code != 1 || err == nil ||
		!strings.Contains(out, "the sandbox of this machine is incomplete: it does not hold") {
		t.Fatalf("it ended with %d, the client has run: %t\n%s", code, err == nil, out)
	}
	if !strings.Contains(out, "landlock") {
		t.Skipf("Landlock does not hold commands here:\n%s", out)
	}
	out, code = run("--weaker", "--", "sh", "-c", "echo ran > ran; echo x > "+p.Home+"/outside; exit 6")
	if ran, err := os.ReadFile(filepath.Join(p.Project, "ran")); code != 6 || string(ran) != "ran\n" ||
		!strings.Contains(out, "--weaker: it does not hold denied and protected files") {
		t.Errorf("with --weaker it ended with %d: %q, %v\n%s", code, ran, err, out)
	}
	if _, err := os.Stat(filepath.Join(p.Home, "outside")); err == nil {
		t.Error("a file was written outside")
	}
}
