package statedir

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func put(t *testing.T, path string) string {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestOwned: what an owner has stays, what a killed one left goes, and what cannot be removed is tried again.
func TestOwned(t *testing.T) {
	dir := t.TempDir()
	var owners []*Mark
	for _, name := range []string{"lives", "killed", "stuck"} {
		m, err := Own(filepath.Join(dir, name+markSuffix))
		if err != nil {
			t.Fatal(err)
		}
		owners = append(owners, m)
		put(t, filepath.Join(dir, name+recordSuffix))
	}
	if err := errors.Join(owners[1].Close(), owners[2].Close()); err != nil { // as the kernel does
		t.Fatal(err)
	}
	for _, name := range []string{"began" + markSuffix, "unmarked" + recordSuffix, "note.txt"} {
		put(t, filepath.Join(dir, name))
	}
	stuck := errors.New("stuck")
	forget := func(name string) error {
		if name == "stuck" {
			return stuck
		}
		return os.Remove(filepath.Join(dir, name+recordSuffix))
	}
	names, err := Owned(dir, forget)
	if !slices.Equal(names, []string{"lives"}) || !errors.Is(err, stuck) {
		t.Errorf("owned are %q, %v", names, err)
	}
	stuck = nil
	if names, err = Owned(dir, forget); len(names) != 1 || err != nil {
		t.Errorf("owned are %q, %v", names, err)
	}
	if err := owners[0].Release(func() error { return forget("lives") }); err != nil {
		t.Error(err)
	}
	if names, err := Owned(dir, forget); names != nil || err != nil {
		t.Errorf("owned are %q, %v", names, err)
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.Name() != "note.txt" && e.Name() != "stuck"+recordSuffix {
			t.Errorf("left: %s", e.Name())
		}
	}
	if names, err := Owned(filepath.Join(dir, "none"), forget); names != nil || err != nil {
		t.Errorf("of no directory: %q, %v", names, err)
	}
}

// TestUnknownOwner: nothing is removed where no lock can be taken.
func TestUnknownOwner(t *testing.T) {
	dir := t.TempDir()
	record := put(t, filepath.Join(dir, "a"+recordSuffix))
	if err := os.Mkdir(filepath.Join(dir, "a"+markSuffix), 0o700); err != nil {
		t.Fatal(err)
	}
	names, err := Owned(dir, func(string) error { return os.Remove(record) })
	if names != nil || err == nil || !exists(record) {
		t.Errorf("owned are %q, %v; the record is there: %v", names, err, exists(record))
	}
}

// TestOwners: whatever sweepers do, an entry has one owner at a time, and sweepers remove nothing that has one.
func TestOwners(t *testing.T) {
	dir := t.TempDir()
	mark := filepath.Join(dir, "x"+markSuffix)
	var owned atomic.Int32
	var work, sweepers sync.WaitGroup
	over := make(chan struct{})
	for range 2 {
		sweepers.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
					_, _ = Owned(dir, func(string) error {
						if owned.Load() != 0 {
							t.Error("swept while it had an owner")
						}
						return nil
					})
				}
			}
		})
	}
	var taken atomic.Int32
	for range 4 {
		work.Go(func() {
			for range 200 {
				m, err := Own(mark)
				if err != nil {
					continue
				}
				taken.Add(1)
				if owned.Add(1) != 1 {
					t.Error("two owners")
				}
				owned.Add(-1)
				if err := m.Release(func() error { return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	close(over)
	sweepers.Wait()
	if taken.Load() == 0 || exists(mark) {
		t.Errorf("taken %d times; the mark is left: %v", taken.Load(), exists(mark))
	}
}
