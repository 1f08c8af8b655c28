//go:build unix

package guard

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"toolhost/guard/settings"
)

// TestHookFiles finds what hooks run of the workspace, and nothing that they only read.
func TestHookFiles(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	testHookFiles(t, base+"/ws")
	testHookFiles(t, base+"/it's a root")
}

func testHookFiles(t *testing.T, root string) {
	for _, name := range []string{"tools/guard", "tools/guard.py", "data.json", "main.go"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		command string
		args    []string
		want    []string
	}{
		{"tools/guard", nil, []string{"tools/guard"}},
		{`"${CLAUDE_PROJECT_DIR}/tools/guard" x`, nil, []string{"tools/guard"}},
		{"${CLAUDE_PROJECT_DIR}/tools/guard", []string{"x"}, []string{"tools/guard"}},
		{"python3", []string{"${CLAUDE_PROJECT_DIR}/tools/guard.py", "data.json"}, []string{"data.json", "tools/guard.py"}},
		{`cd tools && python3 -I guard.py`, nil, []string{"tools/guard.py"}},
		{"sh -c 'tools/guard; true'", nil, []string{"tools/guard"}},
		{"if [ -x tools/none ]; then tools/none; fi", nil, []string{"tools/none"}},
		{"go run main.go", nil, []string{"main.go"}},
		{"jq . data.json && gofmt -l . >>data.json; cat main.go", nil, nil},
		{"/usr/bin/true main.go; ~/bin/x", nil, nil},
		{"echo '", nil, nil},
		{`cd "$CLAUDE_PROJECT_DIR"/tools && python3 -I guard.py`, nil, []string{"tools/guard.py"}},
	} {
		if !plain(root) && strings.HasPrefix(tt.command, `cd "`) {
			continue // is not followed there
		}
		p, err := New(Config{Roots: []string{root}, Settings: &settings.Settings{Hooks: map[string][]settings.HookMatcher{
			settings.PostToolUse: {{Hooks: []settings.Hook{{Type: "command", Command: tt.command, Args: tt.args}}}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, name := range p.core.hooked.Names {
			rel, err := filepath.Rel(root, name)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, rel)
		}
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(got, tt.want) {
			t.Errorf("%s %q runs %q, want %q", tt.command, tt.args, got, tt.want)
		}
	}
}
