package builtin

import (
	"os"
	"path/filepath"
	"testing"
)

// New links that lead out are removed, whatever the bytes of the names above them.
func TestRemoveNewLinks(t *testing.T) {
	place := t.TempDir()
	for _, dir := range []string{"d", "d\xff/e", "d/\xfe"} {
		if err := os.MkdirAll(filepath.Join(place, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link := func(name, to string) string {
		path := filepath.Join(place, name)
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	old := []string{link("d/old", "/etc"), link("d\xff/old", "/etc"), link("old\xff", "/etc")}
	places := notePlaces([]string{place})
	bad := []string{link("d/new", "/etc"), link("d\xff/new", "/etc"), link("d\xff/e/new", "/etc"), link("d/\xfe/\xfd", "/etc"),
		link("new\xff", "/etc")}
	good := []string{link("d\xff/inside", "e"), link("d/inside\xff", "\xfe")}
	if lines := places.removeNew(); len(lines) != len(bad) {
		t.Errorf("removed %q", lines)
	}
	for _, path := range append(old, good...) {
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
	for _, path := range bad {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%q is still there", path)
		}
	}
}
