package builtin

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/builtin/internal/journal"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/readstate"
)

// TestStepIsStale: a step is not made where something else stands than when it was announced.
func TestStepIsStale(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	policy, err := guard.New(guard.Config{Roots: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	store, err := journal.Open(journal.Config{})
	if err != nil {
		t.Fatal(err)
	}
	seen, err := readstate.Open(readstate.Config{})
	if err != nil {
		t.Fatal(err)
	}
	env := &Env{Policy: policy, Runtime: &Runtime{history: store}, ReadState: seen.Scope("s", false)}
	staged := filepath.Join(t.TempDir(), "staged")
	path := filepath.Join(dir, "f")
	write := func(path, content string) journal.Node {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		node, err := journal.NodeAt(path)
		if err != nil {
			t.Fatal(err)
		}
		return node
	}
	next := write(staged, "merged")
	next.Stamp = ""
	for _, tt := range []struct {
		name, now string
		step      journal.Step
		want      string
		stale     bool
	}{
		{"as announced", "old", journal.Step{Expect: write(path, "old"), Restore: next}, "merged", false},
		{"changed", "later", journal.Step{Expect: write(path, "old"), Restore: next}, "later", true},
		{"made meanwhile", "later", journal.Step{Restore: next}, "later", true},
		{"changed, to be removed", "later", journal.Step{Expect: write(path, "old")}, "later", true},
	} {
		write(path, tt.now)
		if tt.step.Path, tt.step.Forced = path, true; !tt.step.Restore.IsAbsent() {
			tt.step.Staged = staged
		}
		failed, err := makeSteps(t.Context(), env, []journal.Step{tt.step}, &journal.Entry{})
		if why := failed[path]; errors.Is(why, errChanged) != tt.stale || !tt.stale && why != nil || err != nil {
			t.Errorf("%s: %v, %v", tt.name, why, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != tt.want {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
	}
}
