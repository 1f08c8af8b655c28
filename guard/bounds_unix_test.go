//go:build unix

package guard

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLinksBeyondTheBounds holds that a file is asked for which may be another name of a
// denied one that was not looked for.
func TestLinksBeyondTheBounds(t *testing.T) {
	top, ws := workspace(t)
	tree(t, top, "priv/a", "priv/b", "priv/c", "priv/d", "ws/in = ws/src/main.go")
	if err := os.Link(filepath.Join(top, "priv/d"), filepath.Join(ws, "named")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		most int
		want Action
	}{{"named", 0, Deny}, {"named", 2, Ask}, {"in", 2, Allow}, {"README.md", 2, Allow}} {
		p := policy(t, ws, testRules(ws, "deny Read(/"+top+"/priv/**)"))
		p.data.links.MostOutside = tt.most
		v := p.Judge(Intent{Tool: "Read", Effects: []Effect{Read{Path: resolve(t, p, tt.name)}}})
		if v.Action != tt.want {
			t.Errorf("%s with %d looked at: %v, want %v\n%s", tt.name, tt.most, v.Action, tt.want, v.Error())
		}
	}
}
