package gateway

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestShownFiles: of the files that an entry names, a server is shown its program and the package of that, and nothing else.
func TestShownFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"node", "tool", "pkg/package.json", "pkg/dist/index.js", "lib/node_modules/a/bin.js",
		".ssh/id_rsa"} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("x"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		command string
		args    []string
		want    []string
	}{
		{"tool", []string{".ssh/id_rsa"}, []string{"tool"}},
		{"node", []string{"pkg/dist/index.js", ".ssh/id_rsa"}, []string{"node", "pkg", "pkg/dist/index.js"}},
		{"node", []string{"--enable-x", "lib/node_modules/a/bin.js"}, []string{"lib/node_modules", "lib/node_modules/a/bin.js", "node"}},
	}
	for _, tt := range tests {
		e := &Entry{Name: "s", Trust: Project}
		for _, arg := range tt.args {
			if filepath.Ext(arg) != "" || arg == ".ssh/id_rsa" {
				arg = filepath.Join(dir, arg)
			}
			e.Args = append(e.Args, arg)
		}
		var want []string
		for _, name := range tt.want {
			want = append(want, filepath.Join(dir, name))
		}
		if got := shownFiles(filepath.Join(dir, tt.command), e); !slices.Equal(got, want) {
			t.Errorf("%s %v: got %v, want %v", tt.command, tt.args, got, want)
		}
	}
}
