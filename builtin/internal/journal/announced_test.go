package journal

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestAnnouncedKilled: wherever an undo of several files dies, the next process tells of each file what it holds, and the undo of the undo,
// or the undo again, leads back.
func TestAnnouncedKilled(t *testing.T) {
	const files = 4
	for dies := range files*2 + 1 { // after so many steps: a content, a mode
		dir := t.TempDir()
		cfg := Config{Dir: filepath.Join(dir, "history")}
		s := open(t, cfg)
		var changes []PathChange
		for i := range files {
			path := filepath.Join(dir, string(rune('a'+i)))
			put(t, path, "before\n")
			before, err := NodeAt(path)
			if err != nil {
				t.Fatal(err)
			}
			put(t, path, "after\n")
			if err := os.Chmod(path, 0o640); err != nil {
				t.Fatal(err)
			}
			after, err := NodeAt(path)
			if err != nil {
				t.Fatal(err)
			}
			changes = append(changes, PathChange{Path: path, Before: before, After: after,
				Content: func() ([]byte, error) { return []byte("before\n"), nil }})
		}
		command, err := s.Announce(Running{Principal: "p", Tool: "Bash", Begun: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := command.Settle(Call{}, changes); err != nil {
			t.Fatal(err)
		}
		dying, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		u, err := dying.PlanUndo(Selection{Principal: "p", Last: 1})
		if err != nil || len(u.Files) != files {
			t.Fatalf("%+v, %v", u, err)
		}
		e, err := dying.BeginSteps(Change{Tool: "undo"}, u.Files)
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range u.Files {
			if i*2 < dies {
				if err := os.WriteFile(f.Path, []byte("before\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if i*2+1 < dies {
				if err := os.Chmod(f.Path, f.Restore.Mode.Perm()); err != nil {
					t.Fatal(err)
				}
			}
		}
		die(t, dying)
		all := list(t, open(t, cfg), Filter{})
		for _, c := range all[:files] {
			now, err := NodeAt(c.Path)
			if err != nil {
				t.Fatal(err)
			}
			if c.ID != e.ID || c.State == Pending || c.State == Unknown || c.State == Done && !now.same(c.after()) ||
				c.State == Failed && !now.same(c.before()) {
				t.Errorf("after %d steps %s is %s and holds %v: %+v", dies, c.Path, c.State, now, c)
			}
		}
		again := open(t, cfg)
		u, err = again.PlanUndo(Selection{Principal: "p", Since: all[len(all)-1].Time})
		if err != nil || len(u.Refused) > 0 {
			t.Fatalf("after %d steps: %+v, %v", dies, u.Refused, err)
		}
		for _, f := range u.Files {
			if diff := cmp.Diff(Node{Blob: BlobOf([]byte("before\n")), Mode: 0o600}, f.Restore); diff != "" {
				t.Errorf("after %d steps: %s", dies, diff)
			}
		}
	}
}

// TestAnnounced: one ID stands for all files of several principals, those that were left count as failed, and the undo can be undone.
func TestAnnounced(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Config{Dir: filepath.Join(dir, "history")})
	begun := time.Now()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	change(t, s, Change{Principal: "p", Path: a}, "1")
	change(t, s, Change{Principal: "q", Path: a}, "2")
	change(t, s, Change{Principal: "q", Path: b}, "3")
	u, err := s.PlanUndo(Selection{Principal: AllPrincipals, Since: begun})
	if err != nil || len(u.Files) != 2 {
		t.Fatalf("%+v, %v", u, err)
	}
	e, err := s.BeginSteps(Change{Tool: "rewind"}, u.Files)
	if err != nil {
		t.Fatal(err)
	}
	put(t, a, absent)
	if err := e.End(b); err != nil {
		t.Fatal(err)
	}
	undone, states := map[string]string{}, map[string]State{}
	for _, c := range list(t, s, Filter{}) {
		if c.ID == e.ID {
			states[c.Path] = c.State
		} else {
			undone[c.Principal+filepath.Base(c.Path)] = c.UndoneBy
		}
	}
	if diff := cmp.Diff(map[string]State{a: Done, b: Failed}, states); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"pa": e.ID, "qa": e.ID, "qb": ""}, undone); diff != "" {
		t.Error(diff)
	}
	u, err = s.PlanUndo(Selection{Principal: AllPrincipals, IDs: []string{e.ID}})
	if err != nil || len(u.Files) != 1 || u.Files[0].Path != a || u.Files[0].Restore.Blob != BlobOf([]byte("2")) {
		t.Errorf("the undo of the undo: %+v, %v", u, err)
	}
}

// TestRunningIn: commands of living hosts are listed for the directories that they may write in, and those of dead ones are not.
func TestRunningIn(t *testing.T) {
	cfg := Config{Dir: filepath.Join(t.TempDir(), "history")}
	s, other := open(t, cfg), open(t, cfg)
	e, err := other.Announce(Running{Command: "make", Roots: []string{"/w/a"}})
	if err != nil {
		t.Fatal(err)
	}
	dead, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	killed, err := dead.Announce(Running{Principal: "p", Command: "dead", Roots: []string{"/w/a"}, Begun: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	die(t, dead)
	for path, want := range map[string]int{"/w/a": 1, "/w": 1, "/w/a/b": 1, "/w/ab": 0} {
		if all, err := s.RunningIn(path); err != nil || len(all) != want {
			t.Errorf("%s: %+v, %v", path, all, err)
		}
	}
	if _, err := e.Settle(Call{}, nil); err != nil {
		t.Error(err)
	}
	if all, err := s.RunningIn("/w/a"); err != nil || len(all) > 0 {
		t.Errorf("after its end: %+v, %v", all, err)
	}
	if roots, err := s.UnsettledRoots(); err != nil || !slices.Equal(roots, []string{"/w/a"}) {
		t.Errorf("unsettled: %q, %v", roots, err)
	}
	file := filepath.Join(t.TempDir(), "f")
	put(t, file, "after")
	for i, want := range []int{0, 0, 1, 0} {
		killed, err := s.Killed(func(Running) bool { return i > 0 })
		settled := 0
		for _, e := range killed {
			if i == 1 {
				e.GiveBack()
			} else if _, err := e.Settle(Call{}, []PathChange{{Path: file, After: Node{Blob: BlobOf([]byte("after")), Mode: 0o600}}}); err != nil {
				t.Error(err)
			} else {
				settled++
			}
		}
		if err != nil || settled != want {
			t.Errorf("settlement %d: %d, %v", i, settled, err)
		}
	}
	if all := list(t, s, Filter{}); len(all) != 1 || all[0].ID != killed.ID || all[0].Command != "dead" ||
		all[0].Path != file {
		t.Errorf("the entry of a killed command: %+v", all)
	}
}

// TestPurge: nothing is left of what was forgotten.
func TestPurge(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Config{Dir: filepath.Join(dir, "history")})
	change(t, s, Change{Path: filepath.Join(dir, "a")}, "one")
	if n, err := Purge(s, time.Now().Add(-time.Hour)); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := Purge(s, time.Now()); n != 1 || err != nil || len(list(t, s, Filter{})) > 0 ||
		len(stored(t, s, packsName)) > 0 {
		t.Errorf("%d, %v, %v", n, err, stored(t, s, packsName))
	}
	change(t, s, Change{Path: filepath.Join(dir, "a")}, "two")
	if u, _ := undo(t, s, Selection{Principal: "p", Last: 1}); len(u.Files) != 1 {
		t.Errorf("after a purge: %+v", u)
	}
}
