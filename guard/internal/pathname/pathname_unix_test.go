//go:build unix

package pathname

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWithin(t *testing.T) {
	for _, tt := range []struct {
		path, dir string
		want      bool
	}{
		{"/ws", "/ws", true},
		{"/ws/a", "/ws", true},
		{"/ws/a", "/ws/", true},
		{"/ws-evil", "/ws", false},
		{"/w", "/ws", false},
		{"/", "/ws", false},
		{"/ws", "/", true},
		{"/ws", "", true},
	} {
		if got := Within(tt.path, tt.dir); got != tt.want {
			t.Errorf("Within(%q, %q) = %v, want %v", tt.path, tt.dir, got, tt.want)
		}
	}
}

// TestSpelling: which names are one name, by the strictest spelling that says so.
func TestSpelling(t *testing.T) {
	for _, tt := range []struct {
		name, other string
		want        Spelling
	}{
		{"a", "a", Exact},
		{"caf\u00e9", "cafe\u0301", Composed},
		{".GIT", ".git", Folded},
		{".g\u200cit", ".git", Folded},
		{"STRASSE", "stra\u00dfe", Folded},
		{"\u212aey", "key", Folded}, // the Kelvin sign
		{"a", "b", Folded + 1},
	} {
		for s := Exact; s <= Folded; s++ {
			if got := s.Of(tt.name) == s.Of(tt.other); got != (s >= tt.want) {
				t.Errorf("%q and %q by the spelling %d: the same is %v", tt.name, tt.other, s, got)
			}
		}
	}
}

func TestIgnoresCase(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "name"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := os.Stat(filepath.Join(dir, "NAME"))
	if got := IgnoresCase(dir); got != (err == nil) {
		t.Errorf("IgnoresCase says %v; by another case: %v", got, err)
	}
}

func TestPlaces(t *testing.T) {
	places := PlacesOf(Folded, Place{Given: "/home/u/link", Real: "/data/Target"}, Place{},
		Place{Given: "/etc/x", Real: "/etc/x"})
	for _, tt := range []struct {
		path                  string
		hold, lieIn, lieBelow bool
	}{
		{"/home/u/link", true, true, false},
		{"/home/u/link/a", true, false, false},
		{"/data/target/a", true, false, false}, // its real name, in another case
		{"/data", false, true, true},
		{"/home/u/link-evil", false, false, false},
		{"/etc/X", true, true, false},
		{"", false, true, true},
		{"/other", false, false, false},
	} {
		hold, lieIn, lieBelow := places.Hold(tt.path), places.LieIn(tt.path), places.LieBelow(tt.path)
		if hold != tt.hold || lieIn != tt.lieIn || lieBelow != tt.lieBelow {
			t.Errorf("%q: %v %v %v, want %v %v %v", tt.path, hold, lieIn, lieBelow, tt.hold, tt.lieIn, tt.lieBelow)
		}
	}
	if new(Places).Hold("/") {
		t.Error("no places hold something")
	}
}
