package search

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLinkedExclude: where .git is a file, the excludes are those of the repository that it leads to.
func TestLinkedExclude(t *testing.T) {
	const all = "sub/a.txt:1\nsub/b.txt:1\n"
	for _, tt := range []struct {
		name, git string
		more      map[string]string
		want      string
	}{
		{"a worktree", "gitdir: $/repo/.git/worktrees/tree\n",
			map[string]string{"repo/.git/worktrees/tree/commondir": "../..\n", "repo/.git/info/exclude": "a.txt\n"},
			"sub/b.txt:1\n"},
		{"by a relative path", "gitdir: ../repo/.git/worktrees/tree\r\n",
			map[string]string{"repo/.git/worktrees/tree/commondir": "../..", "repo/.git/info/exclude": "a.txt\n"},
			"sub/b.txt:1\n"},
		{"an absolute commondir", "gitdir: ../x\n",
			map[string]string{"x/commondir": "$/repo/.git\n", "repo/.git/info/exclude": "b.txt\n"}, "sub/a.txt:1\n"},
		{"a submodule", "gitdir: ../.git/modules/tree\n", map[string]string{".git/modules/tree/info/exclude": "/sub/b*\n"}, "sub/a.txt:1\n"},
		{"the worktree's own do not count", "gitdir: ../x\n",
			map[string]string{"x/commondir": "../repo\n", "x/info/exclude": "a.txt\n"}, all},
		{"no repository there", "gitdir: ../gone\n", nil, all},
		{"no gitdir", "../x\n", map[string]string{"x/info/exclude": "a.txt\n"}, all},
		{"empty", "", nil, all},
	} {
		t.Run(tt.name, func(t *testing.T) {
			top := writeTree(t, map[string]string{"tree/sub/a.txt": "needle\n", "tree/sub/b.txt": "needle\n"})
			fill := func(name, text string) {
				t.Helper()
				name = filepath.Join(top, filepath.FromSlash(name))
				if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(name, []byte(strings.ReplaceAll(text, "$", top)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for name, text := range tt.more {
				fill(name, text)
			}
			fill("tree/.git", tt.git)
			root := filepath.Join(top, "tree")
			for _, path := range []string{root, filepath.Join(root, "sub")} { // the rules of the path, and of what is above it
				q := GrepQuery{Scope: Scope{Path: path}, Pattern: "needle", Mode: Count}
				if got := mustGrep(t, quiet(Config{}), root, q); got.Text != tt.want {
					t.Errorf("in %s: got %q, want %q", filepath.Base(path), got.Text, tt.want)
				}
			}
		})
	}
}

// TestLinkedExcludeChanges: excludes that lie elsewhere change without an event in the tree.
func TestLinkedExcludeChanges(t *testing.T) {
	top := writeTree(t, map[string]string{"tree/a.txt": "needle\n", "tree/b.txt": "needle\n",
		"tree/.git": "gitdir: ../repo\n", "repo/info/exclude": ""})
	root, exclude := filepath.Join(top, "tree"), filepath.Join(top, "repo", "info", "exclude")
	es := newEngines(t, Config{})
	for _, tt := range []struct{ rules, want string }{{"a.txt\n", "b.txt:1\n"}, {"b.txt\n", "a.txt:1\n"},
		{"", "a.txt:1\nb.txt:1\n"}} {
		if err := os.WriteFile(exclude, []byte(tt.rules), 0o644); err != nil {
			t.Fatal(err)
		}
		for name, e := range es {
			q := GrepQuery{Scope: Scope{Base: root, Path: root}, Pattern: "needle", Mode: Count}
			if r, err := e.Grep(context.Background(), q); err != nil || r.Text != tt.want {
				t.Errorf("%s: with %q: got %q, %v; want %q", name, tt.rules, r.Text, err, tt.want)
			}
			if name != walking {
				settle(t, e, root)
			}
		}
	}
}
