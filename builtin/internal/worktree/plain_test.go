package worktree

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPlain changes a plain copy, and the directory that it was made of, and merges: what is changed where, and what conflicts.
func TestPlain(t *testing.T) {
	const files = "mkdir -p d e/f .git; echo one > a; echo two > b; echo three > c; echo four > d/x; echo '*' > .gitignore; ln -s a l; echo g > .git/config"
	for _, c := range []struct {
		name, agent, user string
		changes           string // path, or -path
		conflicts, patch  string
	}{
		{name: "nothing"},
		{name: "times and modes", agent: "touch -d 2020-01-01 a; chmod 600 a; mkdir new"},
		{name: "an edit", agent: "echo x >> a", changes: "a", patch: "--- a\n+++ a\n@@ -1 +1,2 @@\n one\n+x\n"},
		{name: "made, removed", agent: "mkdir -p n/m; echo x > n/m/x; rm b", changes: "-b n/m/x", patch: "+x\n"},
		{name: "executable", agent: "chmod +x a", changes: "a", patch: "--- a\n+++ a\n(4 bytes, mode 0755)\n"},
		{name: "directory for a link", agent: "rm l; mkdir l", changes: "-l", patch: "(removed)\n"},
		{name: "link", agent: "rm l; ln -s b l", changes: "l", patch: "(a link to b)\n"},
		{name: "file for a directory", agent: "rm -r d; echo x > d", changes: "-d/x d"},
		{name: "directory for a file", agent: "rm a; mkdir a; echo x > a/x", changes: "-a a/x"},
		{name: "in .git", agent: "mkdir .git; echo x > .git/x"},
		{name: "both, another file", agent: "echo x >> a", user: "echo y >> b", changes: "a"},
		{name: "both, the same change", agent: "echo x >> a", user: "echo x >> a"},
		{name: "both", agent: "echo x >> a; rm b; echo n > n", user: "echo y >> a; echo y >> b; echo m > n", conflicts: "a b n"},
		{name: "removed by the user", agent: "echo x >> a", user: "rm a", conflicts: "a"},
		{name: "a directory of the user", agent: "echo n > n", user: "mkdir n; echo x > n/x", conflicts: "n"},
		{name: "binary", agent: "printf 'a\\000b' > z", changes: "z", patch: "(3 bytes, mode 0644)\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, r := t.TempDir(), room(t)
			sh(t, dir, files)
			w, err := r.Copy(t.Context(), dir, Try, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Lstat(filepath.Join(w.Tree(), ".git")); err == nil {
				t.Error("the repository was copied")
			}
			if c.agent != "" {
				sh(t, w.Tree(), "umask 022; "+c.agent)
			}
			if c.user != "" {
				sh(t, dir, c.user)
			}
			mustEnd(t, w)
			if !w.Changed() {
				if c.changes+c.conflicts != "" {
					t.Error("no change was found")
				}
				return
			}
			var patch bytes.Buffer
			if err := w.Patch(t.Context(), &patch); err != nil || !strings.Contains(patch.String(), c.patch) {
				t.Errorf("the patch: %v\n%s", err, &patch)
			}
			m, err := w.Merge(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			var changes []string
			for _, change := range m.Changes {
				if change.Staged == "" {
					change.Path = "-" + change.Path
				}
				changes = append(changes, change.Path)
			}
			if got := strings.Join(changes, " "); got != c.changes {
				t.Errorf("changes: %q, want %q", got, c.changes)
			}
			if got := strings.Join(m.Conflicts, " "); got != c.conflicts {
				t.Errorf("conflicts: %q, want %q", got, c.conflicts)
			}
			if err := m.Current(t.Context()); err != nil {
				t.Error(err)
			}
			write(t, dir, m)
			if c.conflicts == "" && c.user == "" {
				if got, want := sh(t, dir, "rm -r .git; find . ! -type d | sort; find . -type f -exec cat {} +"), sh(t,
					w.Tree(), "rm -rf .git; find . ! -type d | sort; find . -type f -exec cat {} +"); got != want {
					t.Errorf("applied:\n%s\nwant\n%s", got, want)
				}
			}
		})
	}
}

// TestPlainStale: what the user changes between the merge and its application is not overwritten.
func TestPlainStale(t *testing.T) {
	dir, r := t.TempDir(), room(t)
	sh(t, dir, "echo one > a")
	w, err := r.Copy(t.Context(), dir, Try, nil)
	if err != nil {
		t.Fatal(err)
	}
	sh(t, w.Tree(), "echo two > a")
	mustEnd(t, w)
	m, err := w.Merge(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	sh(t, dir, "echo mine > a")
	if err := m.Current(t.Context()); err == nil || !strings.Contains(err.Error(), "nothing was applied") {
		t.Errorf("got %v", err)
	}
}
