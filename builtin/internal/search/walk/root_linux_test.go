package walk

import (
	"path/filepath"
	"testing"
)

// roots opens a directory with openat2, and without it as on an old kernel.
func roots(t *testing.T, path string) []*Root {
	t.Helper()
	fast, err := OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := (&Root{}).openFromTop(path)
	if err != nil {
		t.Fatal(err)
	}
	return []*Root{fast, {fd: fd, steps: true}}
}

func TestRootIsNoLink(t *testing.T) {
	dir, roots := open(t)
	for _, r := range roots {
		defer r.Close()
	}
	for _, path := range []string{"linked", "linked/sub", "out", "gone"} {
		path = filepath.Join(dir, path)
		if r, err := OpenRoot(path); err == nil {
			r.Close()
			t.Errorf("OpenRoot(%s) succeeded", path)
		}
		if _, err := (&Root{}).openFromTop(path); err == nil {
			t.Errorf("openFromTop(%s) succeeded", path)
		}
	}
}
