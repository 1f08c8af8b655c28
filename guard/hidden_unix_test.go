//go:build unix

package guard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/guard/internal/realpath"
)

// TestHidingLinks gives a denied file further names after its names were looked for.
func TestHidingLinks(t *testing.T) {
	_, ws := workspace(t)
	if policy(t, ws, testRules(ws, "deny Edit(.env)")).HidingLinks() != nil {
		t.Error("links are looked for though no rule hides files")
	}
	p := policy(t, ws, testRules(ws, "deny Read(.env)"))
	hides := func(name string) bool {
		info, err := os.Stat(filepath.Join(ws, name))
		if err != nil {
			t.Fatal(err)
		}
		id, _ := realpath.Identify(info)
		changed, ok := realpath.Of(info)
		if !ok {
			t.Skip("this system does not tell when a file got a name")
		}
		return p.HidingLinks()(id.Device, id.Inode, changed.UnixNano())
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

// A search leaves out what a rule asks for, but for what it was itself asked for.
func TestAsking(t *testing.T) {
	_, ws := workspace(t)
	p := policy(t, ws, testRules(ws, "ask Read(.env)\nask Read(secrets)\nask Edit(README.md)"))
	for start, want := range map[string]struct{ left, rules string }{
		".":       {".env secrets/key secrets/public/ok", "Read(.env) Read(secrets)"},
		"src":     {".env secrets/key secrets/public/ok", "Read(.env) Read(secrets)"},
		"secrets": {".env", "Read(.env)"},
		".env":    {"secrets/key secrets/public/ok", "Read(secrets)"},
	} {
		asks, names := p.Asking(resolve(t, p, start))
		var left []string
		for _, name := range []string{".env", "secrets/key", "secrets/public/ok", "README.md", "src/main.go"} {
			if asks(filepath.Join(ws, name)) {
				left = append(left, name)
			}
		}
		if got := strings.Join(left, " "); got != want.left || strings.Join(names, " ") != want.rules {
			t.Errorf("from %s: left out are %q by %q, want %q by %q", start, got, names, want.left, want.rules)
		}
	}
	if asks, _ := policy(t, ws, testRules(ws, "deny Read(.env)\nask Edit(x)")).Asking(resolve(t, p, ".")); asks != nil {
		t.Error("without a rule that asks for reading, something is looked for")
	}
}
