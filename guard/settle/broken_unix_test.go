//go:build unix

package settle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBrokenState holds files where the state directory cannot be used, from the start or later.
func TestBrokenState(t *testing.T) {
	for what, spoil := range map[string]func(dir string){
		"a file":      func(dir string) { os.RemoveAll(dir); os.WriteFile(dir, nil, 0o600) },
		"a directory": func(dir string) { os.Remove(dir + "/lock"); os.MkdirAll(dir+"/lock", 0o700) },
		"a record":    func(dir string) { os.Remove(dir + "/record.json"); os.MkdirAll(dir+"/record.json", 0o700) },
		"no record":   func(dir string) { os.WriteFile(dir+"/record.json", []byte("x"), 0o600) },
	} {
		for _, running := range []bool{false, true} {
			t.Setenv("TMPDIR", t.TempDir())
			g := newGround(t)
			g.write(".mcp.json", "old")
			g.call(func() { g.write(".envrc", "held before") })
			dirs, _ := filepath.Glob(g.state + "/settle/*")
			for _, dir := range dirs {
				spoil(dir)
			}
			if !running {
				g.kill()
			}
			note := g.call(func() { g.write(".mcp.json", "new") })
			g.want(what, ".mcp.json=old")
			if !strings.Contains(note, ".mcp.json (changed)") {
				t.Errorf("%s, running %v: %q", what, running, note)
			}
			if err := g.k.Close(); err != nil && running {
				t.Log(err)
			}
		}
	}
}
