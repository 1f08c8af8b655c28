//go:build unix

package guard

import (
	"os"
	"path/filepath"
	"testing"

	"toolhost/guard/internal/ctime"
)

// TestHidingLinks gives a denied file further names after its names were looked for.
func TestHidingLinks(t *testing.T) {
	_, ws := workspace(t)
	if policy(t, ws, rules(ws, "deny Edit(.env)")).HidingLinks() != nil {
		t.Error("links are looked for though no rule hides files")
	}
	p := policy(t, ws, rules(ws, "deny Read(.env)"))
	hides := func(name string) bool {
		info, err := os.Stat(filepath.Join(ws, name))
		if err != nil {
			t.Fatal(err)
		}
		id, _ := identify(info)
		changed, ok := ctime.Of(info)
		if !ok {
			t.Skip("this system does not tell when a file got a name")
		}
		return p.HidingLinks()(id.dev, id.ino, changed.UnixNano())
	}
	if !hides("hard") || hides("two") {
		t.Fatal("the links that were there are told wrong")
	}
	tree(t, ws, "late = sub/.env")
	if !hides("late") {
		t.Error("a link made after the first look is not noticed")
	}
	if err := os.Rename(filepath.Join(ws, "late"), filepath.Join(ws, "later")); err != nil {
		t.Fatal(err)
	}
	if !hides("later") {
		t.Error("a link renamed after the last look is not noticed")
	}
}
