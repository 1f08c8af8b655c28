//go:build slow && unix

package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// renewals are how what stands at a path comes to be another file, as when an editor saves, git checks out or a
// program logs in.
var renewals = []struct {
	name  string
	renew func(path string) error
}{
	{"renamed over", func(path string) error {
		if err := os.WriteFile(path+".next", []byte("{ }\n"), 0o644); err != nil {
			return err
		}
		return os.Rename(path+".next", path)
	}},
	{"removed and made again", func(path string) error {
		if err := os.Remove(path); err != nil {
			return err
		}
		return os.WriteFile(path, []byte("{ }\n"), 0o644)
	}},
	{"directory copied", func(path string) error {
		dir := filepath.Dir(path)
		if err := os.Rename(dir, dir+".old"); err != nil {
			return err
		}
		if err := os.CopyFS(dir, os.DirFS(dir+".old")); err != nil {
			return err
		}
		return os.RemoveAll(dir + ".old")
	}},
}

// TestAttackRenewed writes what is protected, and reads what is masked, after another file has taken its place outside
// of the sandbox, in which commands have run before: a mount is on a file, not on a name.
func TestAttackRenewed(t *testing.T) {
	host.NeedsContained(t)
	attackRenewed(t, newWorld(t))
}

func attackRenewed(t *testing.T, w *world) {
	for name, text := range map[string]string{"ws/.vscode/tasks.json": "{}\n", "ws/.envrc": "\n",
		"ws/deps.lock": "one\n", "home/.git-credentials": canaryHome + "\n"} {
		path := filepath.Join(w.root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h := w.host(t, host.StdioModern, "--root", w.ws, "--deny", "Edit(locked/a.txt)", "--deny", "Edit(*.lock)")
	attempt := 0
	for _, path := range []string{"ws/.envrc", "ws/deps.lock", "ws/locked/a.txt", "ws/.vscode/tasks.json",
		"ws/.claude/settings.json", "ws/.git/hooks/pre-commit"} {
		path = filepath.Join(w.root, path)
		for _, r := range renewals {
			if filepath.Dir(path) == w.ws && r.name == "directory copied" {
				continue
			}
			if err := os.WriteFile(path, []byte("{}\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			h.call(t, "Bash", `{"command":"true"}`, "before")
			if err := r.renew(path); err != nil {
				t.Fatal(err)
			}
			was, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			attempt++
			args := fmt.Sprintf(`{"command":"cd /; f=$(printf %%s '%s'); echo pwned > \"$f\"; mv \"$f\" \"$f.x\"; rm -f \"$f\"; cat \"$f\""}`, path)
			said := h.call(t, "Bash", args, fmt.Sprint(attempt))
			if is, err := os.ReadFile(path); err != nil || string(is) != string(was) {
				t.Errorf("%s, %s: it holds %q, %v; want %q: %s", path, r.name, is, err, was, said.text)
			}
		}
	}
	for _, r := range renewals[:2] {
		path := filepath.Join(w.home, ".git-credentials")
		if err := r.renew(path); err != nil {
			t.Fatal(err)
		}
		if said := h.call(t, "Bash", fmt.Sprintf(`{"command":"f=$(printf %%s '%s'); cat \"$f\""}`, path),
			r.name); said.ok {
			t.Errorf("%s, %s: it is shown: %s", path, r.name, said.text)
		}
	}
	w.before = w.snapshot() // what was renewed above is looked at there
	w.end(t, h)
}
