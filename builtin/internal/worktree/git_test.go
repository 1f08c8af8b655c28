package worktree

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"testing"
)

// TestLongOutput has git print more than is kept, as it does of a repository with millions of files.
func TestLongOutput(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	dir := t.TempDir()
	run := gitRun{dir: dir}
	if _, err := run.git(t.Context(), "init", "-q"); errors.Is(err, exec.ErrNotFound) {
		t.Skip(err)
	}
	if out, err := run.git(t.Context(), "cat-file", "-e", "none"); err == nil || len(out) > 0 {
		t.Errorf("a failure: %q, %v", out, err)
	}
	run.in = bytes.NewReader(make([]byte, 1<<20))
	hash, err := run.text(t.Context(), "hash-object", "-w", "--stdin")
	if err != nil {
		t.Fatal(err)
	}
	run.in = strings.NewReader(strings.Repeat(hash+"\n", maxGitOutput>>20))
	if out, err := run.git(t.Context(), "cat-file", "--batch"); !errors.Is(err, errLongOutput) {
		t.Errorf("got %d bytes, %v", len(out), err)
	}
}
