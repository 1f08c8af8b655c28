package builtin

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/privatedir"
)

// TestSearchTestsNoSandbox: a search in a root does not wait for the test of what this machine can contain, which takes
// longer than the search of a small tree. The root lies in a directory that commands have in private.
func TestSearchTestsNoSandbox(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "a.go"), []byte("package a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	private := privatedir.Open(filepath.Join(t.TempDir(), "private"))
	box, err := OpenRuntime(RuntimeConfig{Private: private, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	policy, err := guard.New(guard.Config{Roots: []string{root}, Home: t.TempDir(), Private: private.Of("me"),
		Contain: func() guard.Containment {
			t.Error("the containment was tested")
			return guard.Containment{}
		}})
	if err != nil {
		t.Fatal(err)
	}
	env := &Env{Runtime: box, Principal: "me", Policy: policy}
	for tool, input := range map[*Def]string{grepTool: `{"pattern":"package"}`, globTool: `{"pattern":"*.go"}`} {
		call, err := tool.Bind([]byte(input))
		if err != nil {
			t.Fatal(err)
		}
		plan, err := call.Plan(t.Context(), env)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := plan.Run(t.Context()); err != nil || got.Text != "a.go\n" {
			t.Errorf("%s found %q, %v", tool.Name, got.Text, err)
		}
	}
}

// TestSavedIndexesRemoved: a host removes the indexes that earlier versions saved, and nothing else.
func TestSavedIndexesRemoved(t *testing.T) {
	const saved = "0123456789abcdef0123456789abcdef"
	outside := filepath.Join(t.TempDir(), "outside")
	for _, tt := range []struct {
		name        string
		files, left []string // in search/
		link        bool     // search is a link to a directory outside
	}{
		{"indexes", []string{saved + ".idx", saved + ".new", "lock"}, nil, false},
		{"files of another program", []string{saved + ".idx", "notes.txt", "sub/x.idx"}, []string{"notes.txt", "sub"}, false},
		{"a link", []string{saved + ".idx"}, []string{saved + ".idx"}, true},
	} {
		state := t.TempDir()
		dir := filepath.Join(state, "search")
		if tt.link {
			if err := os.Mkdir(outside, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(outside, dir); err != nil {
				t.Skip(err)
			}
		}
		for _, name := range tt.files {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte("texts"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		box, err := OpenRuntime(RuntimeConfig{StateDir: state, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := box.Close(); err != nil {
			t.Error(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		var left []string
		for _, e := range entries {
			left = append(left, e.Name())
		}
		if gone := os.IsNotExist(err); !slices.Equal(left, tt.left) || gone != (tt.left == nil) {
			t.Errorf("%s: %q are left, want %q", tt.name, left, tt.left)
		}
	}
}
