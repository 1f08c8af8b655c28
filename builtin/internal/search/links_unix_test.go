//go:build unix

package search

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestLinks: symbolic links are named where they are asked for, or where nothing else is found.
func TestLinks(t *testing.T) {
	outside := writeTree(t, map[string]string{"o.go": "outside\n"})
	root := writeTree(t, map[string]string{
		"real/a.go": "inside\n", "real/sub/s.go": "", "AGENTS.md": "agents\n", "ignored/x": "", ".gitignore": "/old\n", ".git/HEAD": "", "secret/x": "",
	})
	for name, target := range map[string]string{
		"link": "real", "ext": outside, "only/l1.go": "../real/a.go", "only/l2": "../real", "CLAUDE.md": "AGENTS.md", "broken": "nowhere",
		"old": "real", "secret/deep": "../real", "hidden": "real",
	} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(root, "pipe"), 0o666); err != nil {
		t.Fatal(err)
	}
	scope := Scope{Base: root, Path: root, HiddenTag: "t", Hidden: func(real string, dir bool) bool {
		return strings.HasPrefix(real, filepath.Join(root, "secret")) || real == filepath.Join(root, "hidden")
	}}
	const all = "ext, link, only/l2"
	for _, tt := range []struct{ glob, want, links string }{
		{"link/**", "", "link"},
		{"link/*.go", "", "link"},
		{"hidden/*.go", "", ""},
		{"l1.go", "", "only/l1.go"},
		{"only/*", "", "only/l1.go, only/l2"},
		{"*.md", "AGENTS.md\n", "CLAUDE.md"},
		{"CLAUDE.md", "", "CLAUDE.md"},
		{"**/*.py", "", all},
		{"*/o.go", "", "ext, link"},
		{"real/*.py", "", ""},
		{"old", "", all},
		{"pipe", "", all},
		{"real/**/*.go", "", ""},
	} {
		for name, e := range newEngines(t, Config{}) {
			if name != walking {
				settle(t, e, root)
			}
			r, err := e.Glob(context.Background(), GlobQuery{Scope: scope, Pattern: tt.glob})
			if err != nil || tt.want != "" && r.Text != tt.want || linksIn(r.Notes) != tt.links {
				t.Errorf("%s: %s: %+v, %v, want %q %q", name, tt.glob, r, err, tt.want, tt.links)
			}
		}
	}
	for _, tt := range []struct{ pattern, glob, path, links string }{
		{"none", "", "", "ext"},
		{"inside", "", "", ""},
		{"inside", "", "only", "only/l1.go, only/l2"},
		{"none", "link/**", "", "link"},
		{"none", "link/*.go", "", "link"},
		{"none", "*.py", "", all},
		{"none", "*.md", "", "CLAUDE.md, " + all},
		{"none", "real/**", "", ""},
	} {
		for name, e := range newEngines(t, Config{}) {
			if name != walking {
				settle(t, e, root)
			}
			q := GrepQuery{Scope: scope, Pattern: tt.pattern}
			q.Path = filepath.Join(root, tt.path)
			if tt.glob != "" {
				q.Globs = []string{tt.glob}
			}
			r, err := e.Grep(context.Background(), q)
			if err != nil || linksIn(r.Notes) != tt.links {
				t.Errorf("%s: %+v: %+v, %v", name, tt, r, err)
			}
		}
	}
}

// linksIn returns the links that notes name.
func linksIn(notes []string) string {
	for _, note := range notes {
		if _, rest, ok := strings.Cut(note, "Symbolic links are not followed: "); ok {
			names, _, _ := strings.Cut(rest, ". Pass")
			return names
		}
	}
	return ""
}
