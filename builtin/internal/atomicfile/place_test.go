package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestPlace: what is made takes the place of what stood there, or that stands, and nothing else is left.
func TestPlace(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege")
	}
	makers := map[string]func(path string) error{
		"file": func(path string) error { return os.WriteFile(path, []byte("1"), 0o600) },
		"link": func(path string) error { return os.Symlink("target", path) },
		"dir":  func(path string) error { return os.Mkdir(path, 0o700) },
		"full": func(path string) error { return os.MkdirAll(filepath.Join(path, "in"), 0o700) },
		"none": func(path string) error { return errors.New("no room") },
	}
	for old, stands := range makers {
		for new, create := range makers {
			if old == "none" || new == "full" {
				continue
			}
			t.Run(old+" to "+new, func(t *testing.T) {
				dir, path, journal := room(t)
				base := filepath.Join(path, "f")
				if err := stands(base); err != nil {
					t.Fatal(err)
				}
				before, _ := os.Lstat(base)
				err := Place(dir, "f", Options{JournalDir: journal},
					func(name string) error { return create(filepath.Join(path, name)) })
				after, statErr := os.Lstat(base)
				if statErr != nil {
					t.Fatal(statErr)
				}
				if fails := old == "full" || new == "none"; fails != (err != nil) ||
					fails != os.SameFile(before, after) {
					t.Errorf("%v, %v became %v", err, before.Mode(), after.Mode())
				}
				left, _ := os.ReadDir(path)
				entries, _ := filepath.Glob(filepath.Join(journal, "*"+entrySuffix))
				if len(left) != 1 || len(entries) > 0 {
					t.Errorf("left: %v %v", left, entries)
				}
			})
		}
	}
}

// TestRecoverRemovesOtherTemporaries: what a killed Place left goes, be it a link or a directory.
func TestRecoverRemovesOtherTemporaries(t *testing.T) {
	for i, create := range []func(string) error{
		func(path string) error { return os.Symlink("/", path) },
		func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		_, path, journal := room(t)
		name := tempPrefix + fmt.Sprint(i) + tempSuffix
		e, err := recordTemp(journal, path, name)
		if err != nil {
			t.Fatal(err)
		}
		e.abandon()
		if err := create(filepath.Join(path, name)); err != nil {
			t.Skip(err)
		}
		if _, err := Recover(t.Context(), journal); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(filepath.Join(path, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it is left: %v", err)
		}
	}
}
