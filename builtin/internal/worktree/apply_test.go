package worktree

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/samples"
)

// TestMerge: what the user has changed since stays, and what both have changed is a conflict.
func TestMerge(t *testing.T) {
	for i, tt := range []struct{ name, before, child, since, look, want, conflicts string }{
		{"nothing since", "", "echo x >> a; rm sub/b; mkdir n; echo n > n/f; chmod +x n/f; ln -s a l", "", "cat a n/f; test -x n/f; readlink l; ls", "one\nx\nn\na\na\nl\nn", ""},
		{"another file since", "", "echo x >> a", "echo y >> sub/b", "cat a sub/b", "one\nx\ntwo\ny", ""},
		{"another part since", "seq 9 > a; git commit -qam nine", "sed -i 1s/1/x/ a", "sed -i 9s/9/y/ a", "tr '\\n' ' ' < a", "x 2 3 4 5 6 7 8 y", ""},
		{"the same since", "", "echo x >> a", "echo x >> a", "cat a", "one\nx", ""},
		{"both", "", "echo x >> a; echo n > n", "echo y >> a", "cat a n", "one\n<<<<<<< yours\ny\n=======\nx\n>>>>>>> NAME\nn", "a"},
		{"removed since", "", "echo x >> a", "rm a", "cat a", "one\nx", "a"},
		{"removed there", "", "rm a", "echo y >> a", "cat a", "one\ny", "a"},
		{"binary", "printf '\\0a' > b; git add b; git commit -qm b", "printf '\\0b' > b", "printf '\\0c' > b", "tr -d '\\0' < b", "c", "b"},
		{"uncommitted before", "echo mine >> a; echo u > u", "echo x >> a; echo v >> u", "", "cat a u; git diff --cached --name-only", "one\nmine\nx\nu\nv", ""},
		{"ignored by the user", "", "git rm -q --cached .gitignore; echo > .gitignore; echo theirs > x.log", "echo mine > x.log", "cat x.log", "mine", "x.log"},
		{"a file for a directory", "", "rm -r sub; echo f > sub", "", "cat sub", "f", ""},
		{"a file for an empty directory", "", "echo f > e; ln -s a l", "mkdir -p e l", "cat e; readlink l", "f\na", ""},
		{"a file for a directory of ignored files", "", "echo f > e", "mkdir e; echo i > e/x.log", "cat e/x.log", "i", "e"},
		{"a rename of what has changed since", "seq 50 > a; git commit -qam long", "mv a n", "echo y >> a", "tail -1 n; test -e a || echo gone", "y\ngone", ""},
		{"a directory for a file", "", "rm a; mkdir a; echo f > a/f", "", "cat a/f", "f", ""},
		{"commits", "", "echo x >> a; git commit -qam x; echo z >> a", "git commit -q --allow-empty -m mine", "cat a; git log --format=%s", "one\nx\nz\nmine\nfirst", ""},
		{"mode alone", "", "chmod +x a", "chmod go= sub/b", "test -x a && echo x; stat -c %a sub/b", "x\n600", ""},
		{"line ends", "git config core.autocrlf true; rm a; git checkout -q a", "printf 'x\\r\\n' >> a", "", "od -c a | head -1 | tr -s ' '", "0000000 o n e \\r \\n x \\r \\n", ""},
		{"odd names", "", "echo 1 > 'a b'; echo 2 > \"$(printf 'n\\nl')\"; echo 3 > -x; echo 4 > 'ü'", "", "ls | wc -l", "7", ""},
	} {
		if i%samples.Step(1) != 0 {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			dir, r := repository(t), room(t)
			sh(t, dir, tt.before)
			w := mustMake(t, r, dir, true)
			sh(t, w.Tree(), tt.child)
			mustEnd(t, w)
			sh(t, dir, tt.since)
			index := sh(t, dir, "sha256sum .git/index; git for-each-ref")
			m, err := w.Merge(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Current(t.Context()); err != nil {
				t.Fatal(err)
			}
			write(t, dir, m)
			if got := strings.Join(m.Conflicts, " "); got != tt.conflicts {
				t.Errorf("conflicts: %q, want %q", got, tt.conflicts)
			}
			if after := sh(t, dir, "sha256sum .git/index; git for-each-ref"); after != index {
				t.Error("the index or refs have changed")
			}
			if got := sh(t, dir, tt.look); got != strings.ReplaceAll(tt.want, "NAME", w.Name) {
				t.Errorf("got:\n%s\nwant:\n%s", got, tt.want)
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
			if left, _ := filepath.Glob(filepath.Join(w.dir, "stage-*")); len(left) > 0 ||
				strings.Contains(sh(t, dir, "find . -name '.toolhost*'"), "t") {
				t.Error("something is left")
			}
		})
	}
}

// write makes the changes of a merge, as an undo makes its steps.
func write(t *testing.T, dir string, m *Merge) {
	t.Helper()
	all := slices.Concat(m.Changes, m.Dirs())
	slices.SortStableFunc(all, func(a, b Merged) int { return len(strings.Split(b.Path, "/")) - len(strings.Split(a.Path, "/")) })
	for _, c := range all {
		if c.Staged == "" {
			sh(t, dir, "rm -d -- './"+c.Path+"'")
		}
	}
	for _, c := range slices.Backward(all) {
		to := filepath.Join(dir, c.Path)
		info, err := os.Lstat(c.Staged)
		switch {
		case c.Staged == "":
		case err != nil:
			t.Error(err)
		case info.IsDir():
			sh(t, dir, "mkdir -- './"+c.Path+"'")
		default:
			sh(t, dir, "rm -df -- './"+c.Path+"'; cp -P -- '"+c.Staged+"' './"+c.Path+"'")
			if mode := m.Mode(c); mode != 0 {
				if err := os.Chmod(to, mode); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// TestMergeStale: a file that changes between the merge and its writing is found.
func TestMergeStale(t *testing.T) {
	dir, r := repository(t), room(t)
	w := mustMake(t, r, dir, true)
	sh(t, w.Tree(), "echo x >> a")
	mustEnd(t, w)
	m, err := w.Merge(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := m.Current(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("later"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.Current(t.Context()); err == nil || !strings.Contains(err.Error(), "nothing was applied") {
		t.Error(err)
	}
}
