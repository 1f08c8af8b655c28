package builtin

import (
	"log/slog"
	"os"
	"path/filepath"
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
