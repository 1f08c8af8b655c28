package agents

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/testenv"
)

// TestRewindCommand: a command is listed with its counts, shown, and taken back with everything after it.
func TestRewindCommand(t *testing.T) {
	testenv.NeedsNotifications(t)
	home := host.DoctorHome(t)
	for name, content := range map[string]string{
		"a.txt": "a\n", ".gitignore": "build/\n", "build/x": "1\n", ".env": "secret\n", ".git/HEAD": "ref: refs/heads/main\n",
		".claude/settings.json": `{"permissions":{"deny":["Read(.env)"]}}`,
	} {
		host.WriteIn(t, home, "work/"+name, content)
	}
	t.Chdir(filepath.Join(home, "work"))
	for _, call := range []struct{ command, want string }{
		{"cat a.txt", "a\n"},
		{"mv a.txt b.txt; mkdir d; echo 1 >'d/x\ny'; echo 2 >build/x", `[changed 3 files: a.txt, b.txt, "d/x\ny"; 1 ignored file changed, not kept]`},
		{"rm b.txt; ln -s d l", "[changed 2 files: b.txt, l]"},
	} {
		args, err := json.Marshal(map[string]string{"command": call.command})
		if err != nil {
			t.Fatal(err)
		}
		if out, code := host.RunCommand(t, home, "call", "Bash", string(args)); code != 0 ||
			!strings.Contains(out, call.want) {
			t.Fatalf("%s: exit code %d\n%s", call.command, code, out)
		}
	}
	out, _ := host.RunCommand(t, home, "history", "--json")
	var calls []struct {
		ID, Tool, Command string
		Ignored           int
		Files             []struct{ Path, Change string }
	}
	if err := json.Unmarshal([]byte(out), &calls); err != nil || len(calls) != 2 || calls[1].Ignored != 1 ||
		len(calls[1].Files) != 4 || strings.Contains(out, ".env") {
		t.Fatalf("the history is %v\n%s", err, out)
	}
	id := calls[1].ID
	if out, code := host.RunCommand(t, home, "diff", id); code != 0 || !strings.Contains(out, "-a\n") ||
		!strings.Contains(out, "+1\n") {
		t.Errorf("diff: exit code %d\n%s", code, out)
	}
	if out, code := host.RunCommand(t, home, "rewind", id, "--dry-run"); code != 0 ||
		!strings.Contains(out, "would be restored") {
		t.Errorf("dry run: exit code %d\n%s", code, out)
	}
	if out, code := host.RunCommand(t, home, "rewind", id); code != 2 || !strings.Contains(out, "--yes") {
		t.Errorf("without a terminal: exit code %d\n%s", code, out)
	}
	if _, err := os.Lstat("l"); err != nil {
		t.Error("something was done without an answer")
	}
	if out, code := host.RunCommand(t, home, "rewind", id, "--yes"); code != 0 {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if got, err := os.ReadFile("a.txt"); err != nil || string(got) != "a\n" {
		t.Errorf("a.txt: %q, %v", got, err)
	}
	for _, gone := range []string{"b.txt", "d", "l"} {
		if _, err := os.Lstat(gone); err == nil {
			t.Errorf("%s is still there", gone)
		}
	}
	if out, code := host.RunCommand(t, home, "history"); code != 0 || !strings.Contains(out, "  rewind  ") {
		t.Errorf("the history after the rewind: exit code %d\n%s", code, out)
	}
	out, _ = host.RunCommand(t, home, "history", "--json", "--limit", "1")
	if err := json.Unmarshal([]byte(out), &calls); err != nil || len(calls) != 1 || calls[0].Tool != "rewind" ||
		!strings.Contains(out, `"command":`) {
		t.Fatalf("the rewind is not one entry: %v\n%s", err, out)
	}
	if out, code := host.RunCommand(t, home, "undo", calls[0].ID); code != 0 {
		t.Errorf("undo of the rewind: exit code %d\n%s", code, out)
	}
	if _, err := os.Lstat("l"); err != nil {
		t.Error("the rewind is not undone")
	}
	if out, code := host.RunCommand(t, home, "history", "purge", "--older-than", "1h", "--yes"); code != 0 ||
		!strings.Contains(out, "forgot 0 calls") {
		t.Errorf("purge of what is older: exit code %d\n%s", code, out)
	}
	if out, code := host.RunCommand(t, home, "history", "purge", "--yes"); code != 0 ||
		!strings.Contains(out, "forgot 4 calls") {
		t.Errorf("purge: exit code %d\n%s", code, out)
	}
	if out, code := host.RunCommand(t, home, "history", "--json"); code != 0 || strings.TrimSpace(out) != "[]" {
		t.Errorf("the history after the purge: exit code %d\n%s", code, out)
	}
	if out, code := host.RunCommand(t, home, "diff"); code != 2 ||
		!strings.Contains(out, "toolhost history lists the IDs") {
		t.Errorf("diff without an ID: exit code %d\n%s", code, out)
	}
	for _, bad := range [][]string{{"rewind"}, {"rewind", "nothing"}, {"rewind", "zzzzzzzzzzzz"}} {
		if out, code := host.RunCommand(t, home, bad...); code == 0 {
			t.Errorf("%v: exit code 0\n%s", bad, out)
		}
	}
}

// TestRewindOddNames: a name that is not UTF-8, or has lines, is told as it is, and taken back.
func TestRewindOddNames(t *testing.T) {
	home := host.DoctorHome(t)
	host.WriteIn(t, home, "work/a", "a\n")
	t.Chdir(filepath.Join(home, "work"))
	if out, code := host.RunCommand(t, home, "call", "Bash",
		`{"command":"mkdir d; echo 1 >d/x; ln -s d l; echo b >$'n\\xff\\n'; rm -r d; ln -s a d"}`); code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	out, code := host.RunCommand(t, home, "call", "Bash",
		`{"command":"rm d; mkdir d; echo 2 >d/x; echo c >$'n\\xff\\n'"}`)
	if code != 0 || !strings.Contains(out, `[changed 3 files: d, d/x, "n\xff\n"]`) {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	out, _ = host.RunCommand(t, home, "history", "--json")
	var calls []struct {
		ID    string
		Files []struct {
			Path    string
			RawPath []byte `json:"raw_path"`
		}
	}
	if err := json.Unmarshal([]byte(out), &calls); err != nil || len(calls) != 2 || len(calls[0].Files) != 3 {
		t.Fatalf("the history is %v\n%s", err, out)
	}
	if f := calls[0].Files[2]; string(f.RawPath) != filepath.Join(home, "work", "n\xff\n") ||
		calls[0].Files[1].RawPath != nil {
		t.Errorf("the paths are %+v", calls[0].Files)
	}
	if out, code := host.RunCommand(t, home, "diff", calls[0].ID); code != 0 ||
		!strings.Contains(out, `n\xff\n"`+"\n@@") || !strings.Contains(out, "-b\n+c\n") {
		t.Errorf("diff: exit code %d\n%s", code, out)
	}
	if out, code := host.RunCommand(t, home, "rewind", calls[0].ID, "--path", string(calls[0].Files[2].RawPath),
		"--dry-run"); code != 0 || strings.Count(out, "would be restored") != 1 {
		t.Errorf("rewind of one path: exit code %d\n%s", code, out)
	}
	if out, code := host.RunCommand(t, home, "rewind", calls[0].ID, "--yes", "--json"); code != 0 ||
		!strings.Contains(out, `"raw_path":"`) {
		t.Errorf("exit code %d\n%s", code, out)
	}
	target, _ := os.Readlink("d")
	if got, err := os.ReadFile("n\xff\n"); err != nil || string(got) != "b\n" || target != "a" {
		t.Errorf("%q, %v, d leads to %q", got, err, target)
	}
}

// TestRewindAtHome: what commands change in the home directory is not covered, and that is said. In all of the disk none runs.
func TestRewindAtHome(t *testing.T) {
	home := host.DoctorHome(t)
	t.Chdir(home)
	for root, want := range map[string]string{
		home: "What commands change in " + home + " cannot be taken back: it is, or holds, the home directory",
		"/":  `"/" is the root of the file system: use more specific directories`,
	} {
		out, code := host.RunCommand(t, home, "call", "--root", root, "Bash", `{"command":"echo 1 >'`+home+`/made'"}`)
		if code != 0 != (root == "/") || !strings.Contains(out, want) {
			t.Errorf("%s: exit code %d\n%s", root, code, out)
		}
		if out, code := host.RunCommand(t, home, "history", "--json", "--path", home); code != 0 ||
			strings.TrimSpace(out) != "[]" {
			t.Errorf("%s: exit code %d\n%s", root, code, out)
		}
	}
}
