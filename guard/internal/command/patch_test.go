package command

import (
	"slices"
	"testing"
)

func TestPatch(t *testing.T) {
	for text, want := range map[string]bool{
		"git apply x": true, "git -C d am x": true, "patch -p1 < x": true, "patch a b": true, "git add x": false, "git": false, "cat x": false,
	} {
		if got := Analyze(text).Commands[0].Patches(); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestPatchedNames(t *testing.T) {
	for text, want := range map[string][]string{
		"--- a/x\n+++ b/y/z\t2026-01-01\n+++ no\n":     {"b/y/z", "y/z", "no"},
		"diff --git a/x b/x y\nnew file mode 100755\n": {"b/x y", "x y"},
		"rename from a\nrename to .vscode/a\r\n":       {".vscode/a", "a"},
		"+++ /dev/null\n++ x\n+++\n text\n":            nil,
		`+++ "b/\303\251"`:                             {`b/\303\251`, `\303\251`},
		"Index: x/.envrc\n":                            {"x/.envrc", ".envrc"},
	} {
		if got := PatchedNames(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
