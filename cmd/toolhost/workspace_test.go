package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestWorkspaces(t *testing.T) {
	home := t.TempDir()
	other := t.TempDir()
	for _, dir := range []string{
		home + "/.claude", home + "/src/app/.git", home + "/src/app/deep/er", home + "/src/app/vendor/lib/.git", home +
			"/notes", other + "/x/.toolhost", other + "/x/y",
	} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name  string
		paths []string
		want  []string
	}{
		{"a marked directory", []string{home + "/src/app/deep/er/a"}, []string{home + "/src/app"}},
		{"the nearest one", []string{home + "/src/app/vendor/lib/a"}, []string{home + "/src/app/vendor/lib"}},
		{"none within another", []string{home + "/src/app/vendor/lib/a", home + "/src/app/b"}, []string{home + "/src/app"}},
		{"the home directory is no workspace", []string{home + "/notes/a"}, []string{home + "/notes"}},
		{"a file in the home directory", []string{home + "/a"}, []string{home}},
		{"a directory that is gone", []string{home + "/notes/gone/too/a"}, []string{home + "/notes"}},
		{"two of them", []string{other + "/x/y/a", home + "/notes/a"}, []string{home + "/notes", other + "/x"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			slices.Sort(tt.want)
			if got := workspaces(tt.paths, home); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if got := workspaces([]string{string(filepath.Separator) + "a"}, home); !slices.Equal(got,
		[]string{string(filepath.Separator)}) {
		t.Errorf("of a file at the top: %q", got)
	}
}
