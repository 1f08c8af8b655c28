package builtin

import (
	"errors"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/builtin/internal/shell"
	"github.com/toolhost/toolhost/builtin/internal/task"
)

func TestChunkText(t *testing.T) {
	kept := &shell.Result{Shown: shell.Shown{Spilled: "/state/bash-1.txt"}}
	tests := []struct {
		chunk task.Chunk
		want  string
	}{
		{task.Chunk{}, "(no new output)\n"},
		{task.Chunk{Text: "a\n"}, "a\n"},
		{task.Chunk{Line: "b"}, "b\n[The last line is not finished; it comes again.]\n"},
		{task.Chunk{Text: "a\n", Skipped: 1}, "[1 byte of output before this is no longer kept.]\na\n"},
		{task.Chunk{Text: "a\n", Skipped: 2, Done: true, Result: &shell.Result{}}, "[2 bytes of output before this are no longer kept.]\na\n"},
		{task.Chunk{Text: "a\n", Skipped: 2, Done: true, Result: kept}, "[2 bytes of output before this are in /state/bash-1.txt.]\na\n"},
	}
	for _, tt := range tests {
		if got := chunkText(tt.chunk); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.chunk, got, tt.want)
		}
	}
	if got := taskEnd(task.Chunk{Done: true, Err: errors.New("the shell is gone")}); got != "the shell is gone" {
		t.Errorf("a task that could not run: %q", got)
	}
}

// A pattern is refused before anything is waited for.
func TestTaskOutputRefusesPatterns(t *testing.T) {
	for args, want := range map[string]string{
		`{"task_id":"t","until":"` + strings.Repeat("é", maxUntil/2) + `"}`:   "",
		`{"task_id":"t","until":"` + strings.Repeat("é", maxUntil/2+1) + `"}`: "until: expected at most 1000 bytes, got 1002",
		`{"task_id":"t","until":""}`:                                          "until: expected a regular expression, got an empty one",
		`{"task_id":"t","until":"a\\1"}`:                                      `until: expected a regular expression in the syntax of RE2, got "a\\1"`,
		`{"task_id":"t","until":"a{1001}"}`:                                   "invalid repeat count",
		`{"task_id":"t","until":"a","block":"false"}`:                         "until waits for a line, but block is false",
	} {
		call, err := taskOutputTool.Bind([]byte(args))
		if err != nil {
			t.Fatal(err)
		}
		_, err = call.Plan(t.Context(), &Env{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

func TestPlusMinus(t *testing.T) {
	for _, tt := range []struct {
		diff     string
		complete bool
		want     string
	}{
		{"--- a\n+++ a\n@@ -1,2 +1,3 @@\n x\n-y\n+--- z\n+\n", true, "+2 -1"}, {"", true, "+0 -0"}, {"--- a\n+++ a\n@@ -1 +1 @@\n-y\n", false, ""},
	} {
		if got := plusMinus(tt.diff, tt.complete); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.diff, got, tt.want)
		}
	}
	for text, want := range map[string]string{"": "", "a": "a", "a\nb\n\n": "b", "\n": ""} {
		if got := lastLine(text); got != want {
			t.Errorf("the last line of %q is %q", text, got)
		}
	}
}
