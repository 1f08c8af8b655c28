package journal

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/guard/privatefile"
)

// TestSlots: hosts of before had the IDs of their open entries in slots of their mark. They are pending while such a
// host lives, and settled once it is dead.
func TestSlots(t *testing.T) {
	dir, path := filepath.Join(t.TempDir(), "history"), filepath.Join(t.TempDir(), "f")
	s := open(t, Config{Dir: dir})
	made := entry(t, s, Change{Path: path}, "made")
	put(t, path, "made")
	lost := entry(t, s, Change{Path: path}, "lost")
	die(t, s)
	for _, e := range []*Entry{made, lost} {
		if err := os.Remove(s.owner.openFile(e.ID)); err != nil {
			t.Fatal(err)
		}
	}
	mark := s.owner.path(s.owner.name)
	if err := os.WriteFile(mark, []byte(string(make([]byte, 16))+made.ID+"   \n               \n"+lost.ID+"   \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lock := privatefile.NewLock(mark)
	if free, err := lock.TryLock(); err != nil || !free {
		t.Fatal(free, err)
	}
	check := func(want ...State) {
		t.Helper()
		for i, c := range list(t, open(t, Config{Dir: dir}), Filter{}) {
			if c.State != want[i] {
				t.Errorf("change %d is %s, want it %s", i, c.State, want[i])
			}
		}
	}
	check(Pending, Pending)
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	check(Failed, Done)
	if _, err := os.Lstat(mark); err == nil {
		t.Error("the mark of a dead host stays")
	}
}
