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

// TestRunUnknown has a client that is in no table change its configuration: it works on copies, which the next run finds, and the person's
// files stay.
func TestRunUnknown(t *testing.T) {
	t.Parallel()
	p := newRunner(t)
	bin := host.TempDir(t)
	client := filepath.Join(bin, "otherclient")
	host.MustWrite(t, client, "#!/bin/sh\nfor f in .otherclient config/otherclient .local/share/otherclient; do echo new >> ~/$f/file && cat ~/$f/file; done\n")
	host.Must(t, os.Chmod(client, 0o755))
	files := []string{".otherclient/file", "config/otherclient/file", ".local/share/otherclient/file"}
	for _, name := range files {
		host.MustWrite(t, filepath.Join(p.Home, name), "old\n")
	}
	for _, want := range []string{"old\nnew\n", "old\nnew\nnew\n"} {
		if out, ok := p.Run(t, []string{"PATH=" + bin + ":" + os.Getenv("PATH")}, host.Binary, "run", "--",
			"otherclient"); !ok || !strings.Contains(out, strings.Repeat(want, len(files))) {
			t.Errorf("it says\n%s\nnot %q", out, want)
		}
	}
	for _, name := range files {
		if text, err := os.ReadFile(filepath.Join(p.Home, name)); err != nil || string(text) != "old\n" {
			t.Errorf("%s is %q, %v", name, text, err)
		}
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

// TestRunNoSize has a client in a terminal that tells no size, as some programs that run others give them.
func TestRunNoSize(t *testing.T) {
	t.Parallel()
	p := newRunner(t)
	out, _ := p.Run(t, nil, "python3", "-c", `import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)`, host.Binary,
		"run", "--", "sh", "-c", "stty size; test -t 0 && echo terminal; exit 5")
	if !strings.Contains(out, "0 0\r\n") || !strings.Contains(out, "terminal") {
		t.Errorf("it says %q", out)
	}
}
