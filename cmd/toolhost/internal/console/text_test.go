package console

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDiffLines(t *testing.T) {
	const text = "- not a diff yet\n\n--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n z\n"
	want := []line{{"", "- not a diff yet"}, {"", ""}, {"file", "--- a"}, {"file", "+++ a"}, {"hunk", "@@ -1 +1 @@"},
		{"del", "-x"}, {"add", "+y"}, {"", " z"}}
	if diff := cmp.Diff(want, diffLines(text)); diff != "" {
		t.Error(diff)
	}
}

func TestFields(t *testing.T) {
	long := strings.Repeat("é", maxField)
	got := fields([]byte(`{"file_path":"a","old_string":"x\ny\n","n":5,"list":["a"],"content":"` + long + `"}`))
	if len(got) != 5 {
		t.Fatalf("got %d fields", len(got))
	}
	if last := got[4]; last.Cut != maxField/2 || last.Lines[0].Kind != "add" {
		t.Errorf("of the long field %d characters are not shown, want %d", last.Cut, maxField/2)
	}
	want := []field{
		{Name: "file_path", Lines: []line{{"", "a"}}}, {Name: "old_string", Lines: []line{{"del", "x"}, {"del", "y"}}},
		{Name: "n", Lines: []line{{"", "5"}}}, {Name: "list", Lines: []line{{"", `["a"]`}}},
	}
	if diff := cmp.Diff(want, got[:4]); diff != "" {
		t.Error(diff)
	}
	if got := fields([]byte(`"text"`)); len(got) != 1 || got[0].Name != "input" {
		t.Errorf("what is no object is shown as %+v", got)
	}
}

func TestClip(t *testing.T) {
	for _, tt := range []struct {
		s    string
		most int
		want string
	}{{"abc", 3, "abc"}, {"abc", 2, "ab"}, {"aé", 2, "a"}, {"é", 1, ""}, {"", 5, ""}} {
		if got := clip(tt.s, tt.most); got != tt.want {
			t.Errorf("clip(%q, %d) = %q, want %q", tt.s, tt.most, got, tt.want)
		}
	}
}

// TestNumbered: a line of a file that looks like the head of a diff is shown as what it is.
func TestNumbered(t *testing.T) {
	const diff = "--- a\n+++ a\n@@ -3,4 +3,5 @@\n same\n--- gone\n+++ evil\n+@@ -1 +1 @@\n+x\n\\ No newline at end of file\n@@ -20 +21 @@\n-y\n+z\n"
	want := []line{
		{"", "    3  same"}, {"del", "    4 --- gone"}, {"add", "    4 +++ evil"}, {"add", "    5 +@@ -1 +1 @@"}, {"add", "    6 +x"},
		{"hunk", "\\ No newline at end of file"}, {"hunk", "⋯"}, {"del", "   20 -y"}, {"add", "   21 +z"},
	}
	if got := numbered(diff); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
