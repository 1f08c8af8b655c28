package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/integration/samples"
	"github.com/toolhost/toolhost/integration/testenv"
	"github.com/toolhost/toolhost/mcpserver/auth"
)

// bash runs a command and returns the text of the result.
func bash(t *testing.T, h *Host, command string) string {
	t.Helper()
	return bashBy(t, h, Local(), command)
}

// bashBy is bash by a caller.
func bashBy(t *testing.T, h *Host, by auth.Identity, command string) string {
	t.Helper()
	testenv.NotShort(t, "starts a sandbox")
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		t.Fatal(err)
	}
	return h.Call(context.Background(), h.Admit(by, map[string]any{"threadId": "t"}, "", true),
		Request{Tool: "Bash", Args: args}).Text
}

// treeOf is what stands below a directory without .git: of each path its mode, and its content or target.
func treeOf(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == ".git" && d.IsDir():
			return filepath.SkipDir
		case d.Name() == ".git": // of a worktree or a submodule
			return nil
		case path == root:
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		var content string
		if info.Mode()&fs.ModeSymlink != 0 {
			content, err = os.Readlink(path)
		} else if info.Mode().IsRegular() {
			var raw []byte
			raw, err = os.ReadFile(path)
			content = string(raw)
		}
		all[path[len(root)+1:]] = fmt.Sprintf("%v %q", info.Mode(), content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// tookLong is said where a comparison met its bound, and what it did not reach is not covered.
var tookLong = regexp.MustCompile(`Comparing the workspace|was being compared`)

// TestRewind: after any commands of two callers, undoing all changes since one of them gives back the tree as it was before that one, and
// undoing the undo gives back the tree as it was left.
func TestRewind(t *testing.T) {
	t.Parallel()
	for seed := range samples.Rounds(20) { // of six scripts each
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(uint64(seed), 7))
			h, root := openHost(t, map[string]string{"a": "1\n", "d/b": "2\n", "d/e/c": "3\n"})
			if seed%2 == 0 {
				bash(t, h, "git init -q; git add -A; git -c user.name=a -c user.email=a@b commit -qm 1; git repack -qad")
			}
			another := auth.Identity{Principal: "another", Rights: auth.All}
			for _, by := range []auth.Identity{Local(), another} { // the first command of a caller may begin before the workspace has been read
				for strings.Contains(bashBy(t, h, by, "true"), "had been read") {
				}
			}
			var before []map[string]string
			var since []time.Time
			for range 6 {
				before = append(before, treeOf(t, root))
				since = append(since, time.Now())
				by := Local()
				if rnd.IntN(3) == 0 {
					by = another
				}
				if said := bashBy(t, h, by, randomScript(rnd, 1+rnd.IntN(8))); tookLong.MatchString(said) {
					t.Skipf("the machine is too slow: %s", said)
				}
			}
			left := treeOf(t, root)
			to := rnd.IntN(len(since))
			id := undo(t, h, since[to])
			if diff := cmp.Diff(before[to], treeOf(t, root)); diff != "" {
				t.Fatalf("rewound to %d (-before +rewound):\n%s", to, diff)
			}
			if id == "" { // the scripts have changed nothing
				return
			}
			if r, err := h.Operator().Undo(t.Context(), builtin.UndoSelection{IDs: []string{id}}); err != nil || r.ID == "" || slices.ContainsFunc(r.Files, func(u builtin.Undone) bool { return u.Err != nil }) {
				t.Fatalf("the undo of the rewind: %+v, %v", r, err)
			}
			if diff := cmp.Diff(left, treeOf(t, root)); diff != "" {
				t.Errorf("undone again (-left +undone):\n%s", diff)
			}
		})
	}
}

// undo takes back everything since a time, and returns the ID of that.
func undo(t *testing.T, h *Host, since time.Time) string {
	t.Helper()
	all, err := h.Operator().Undo(t.Context(), builtin.UndoSelection{Since: since})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range all.Files {
		if u.Err != nil {
			t.Errorf("%s: %v", u.Path, u.Err)
		}
	}
	return all.ID
}

// randomScript is a script of n commands that change files.
func randomScript(rnd *rand.Rand, n int) string {
	names := []string{"a", "b", "c d", "e"}
	path := func() string {
		p := names[rnd.IntN(len(names))]
		for rnd.IntN(2) == 0 {
			p += "/" + names[rnd.IntN(len(names))]
		}
		return "'" + p + "'"
	}
	forms := []string{
		"mkdir -p %s; : %s", "echo $RANDOM > %s; : %s", "echo $RANDOM >> %s; : %s", "mv -T %s %s", "rm -rf %s; : %s", "ln -sfn %s %s", "ln -f %s %s",
		"chmod 750 %s; : %s", "chmod 640 %s; : %s", "cp -r %s %s", "sed -i s/1/2/ %s; : %s", "git stash -qu; : %s %s", "git checkout -q .; : %s %s",
		"git gc -q --prune=now; : %s %s", "rm -rf .git; : %s %s", "tar cf t %s; rm -rf %[1]s; mkdir -p %s; tar xf t -C %[2]s",
		"mkdir -p %s; for i in $(seq 200); do : > %[1]s/$i; done; : %s",
	}
	lines := []string{"exec 2>/dev/null"}
	for range n {
		lines = append(lines, fmt.Sprintf(forms[rnd.IntN(len(forms))], path(), path()))
	}
	return strings.Join(lines, "\n")
}

// TestRewindLeavesOthers: what another program changed since is left and named, and no planted link leads out of the root.
func TestRewindLeavesOthers(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "f"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	h, root := openHost(t, map[string]string{"a": "1\n", "d/f": "2\n", ".env": "secret\n",
		".claude/settings.json": `{"permissions":{"deny":["Read(.env)"]}}`})
	since := time.Now()
	if got := bash(t, h, "echo 2 > a; echo 3 > d/f"); !strings.Contains(got, "[changed 2 files: a, d/f]") {
		t.Errorf("the result is %q", got)
	}
	for path, content := range map[string]string{"a": "theirs\n", ".env": "other\n"} {
		if err := os.WriteFile(filepath.Join(root, path), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(filepath.Join(root, "d"), filepath.Join(root, "moved")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(root, "d")); err != nil {
		t.Fatal(err)
	}
	all, err := h.Operator().Undo(t.Context(), builtin.UndoSelection{Since: since})
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]string{}
	for _, u := range all.Files {
		left[u.Path[len(root)+1:]] = fmt.Sprint(u.Err)
	}
	for _, path := range []string{"a", "d/f"} {
		if left[path] == "" || left[path] == "<nil>" {
			t.Errorf("%s: %q of %v", path, left[path], slices.Sorted(maps.Keys(left)))
		}
	}
	for path, want := range map[string]string{filepath.Join(root, "a"): "theirs\n", filepath.Join(outside, "f"): "mine",
		filepath.Join(root, ".env"): "other\n"} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
}

// TestRewindReplacedDirectory: a directory that a command replaced by a link to outside comes back with its files, and the target of
// the link stays as it is.
func TestRewindReplacedDirectory(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "f"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	h, root := openHost(t, map[string]string{"d/f": "1\n", "d/e/g": "2\n"})
	since := time.Now()
	bash(t, h, "rm -r d; ln -s "+outside+" d")
	undo(t, h, since)
	for path, want := range map[string]string{filepath.Join(root, "d/f"): "1\n", filepath.Join(root, "d/e/g"): "2\n",
		filepath.Join(outside, "f"): "mine"} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	if info, err := os.Lstat(filepath.Join(root, "d")); err != nil || !info.IsDir() {
		t.Errorf("d is %v, %v", info, err)
	}
}

// TestRewindWhileRunning: nothing is rewound while a command of any host runs in the workspace, unless that is forced.
func TestRewindWhileRunning(t *testing.T) {
	h, root := openHost(t, map[string]string{"a": "1\n"})
	since := time.Now()
	bash(t, h, "echo 2 > a")
	call := h.Call(t.Context(), h.Admit(Local(), map[string]any{"threadId": "t"}, "", true),
		Request{Tool: "Bash", Args: json.RawMessage(`{"command":"sleep 600","run_in_background":true}`)})
	if call.IsError {
		t.Fatal(call.Text)
	}
	operator := h.Operator()
	plan, err := operator.Undo(t.Context(), builtin.UndoSelection{Since: since, Path: root, DryRun: true, Diffs: true})
	if err != nil || plan.Refused == nil || len(plan.Running) != 1 || plan.Running[0].Command != "sleep 600" ||
		plan.Running[0].PID != os.Getpid() {
		t.Errorf("the plan is %+v, %v", plan, err)
	}
	if len(plan.Files) != 1 || !strings.Contains(plan.Files[0].Diff, "-2\n+1\n") {
		t.Errorf("the files are %+v", plan.Files)
	}
	if r, err := operator.Undo(t.Context(), builtin.UndoSelection{Since: since, Path: root}); err == nil ||
		len(r.Files) > 0 {
		t.Errorf("rewound while a command runs: %+v", r)
	}
	if r, err := operator.Undo(t.Context(), builtin.UndoSelection{Since: since, Path: t.TempDir()}); err != nil ||
		len(r.Running) > 0 {
		t.Errorf("another workspace: %+v, %v", r, err)
	}
	for _, task := range operator.Tasks() {
		if _, err := task.Stop(""); err != nil {
			t.Fatal(err)
		}
	}
	undo(t, h, since)
	if got, err := os.ReadFile(filepath.Join(root, "a")); err != nil || string(got) != "1\n" {
		t.Errorf("a is %q, %v", got, err)
	}
}

// TestChangedNames: directories count in which nothing else changed, whatever stands next to them, and each name can be told exactly.
func TestChangedNames(t *testing.T) {
	t.Parallel()
	h, _ := openHost(t, map[string]string{"a": "1\n"})
	for strings.Contains(bash(t, h, "true"), "had been read") {
	}
	for _, tt := range []struct{ command, want string }{
		{"mkdir d; touch d/x d-x d.x 'd x' d+x dx", "[changed 6 files: d/x, \"d x\", d+x, d-x, d.x, dx]"},
		{"mkdir e e/f e-f", "[changed 2 files: e/f/, e-f/]"},
		{"for i in $(seq 10 49); do mkdir s$i; : >s$i/f; done", "s29/f and 20 more]"},
	} {
		if got := bash(t, h, tt.command); !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %s want %s", tt.command, got, tt.want)
		}
	}
	for command, want := range map[string]string{
		`touch $'n\xff' o`: `{"files":2,"names":["n\ufffd","o"],"raw_names":["bv8=","bw=="]}`, "touch é": `{"files":1,"names":["é"]}`,
	} {
		args, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		out, _ := h.Call(t.Context(), h.Admit(Local(), map[string]any{"threadId": "t"}, "", true),
			Request{Tool: "Bash", Args: args}).Structured.(builtin.BashOutput)
		if got, err := json.Marshal(out.Changed); err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v want %s", command, got, err, want)
		}
	}
}
