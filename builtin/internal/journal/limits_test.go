package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/guard/statedir"
)

func TestAge(t *testing.T) {
	dir, files := filepath.Join(t.TempDir(), "history"), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Dir: dir, MaxAge: 24 * time.Hour, Quota: packShare} // a pack for each
		s := open(t, cfg)
		change(t, s, Change{Path: filepath.Join(files, "a")}, "a1")
		time.Sleep(time.Hour)
		change(t, s, Change{Path: filepath.Join(files, "a")}, "a2")
		time.Sleep(time.Hour)
		kept := change(t, s, Change{Path: filepath.Join(files, "a")}, "a3")
		time.Sleep(23*time.Hour + time.Minute)
		later := open(t, cfg)
		time.Sleep(tidyDelay)
		synctest.Wait()
		if n := len(list(t, later, Filter{})); n != 1 {
			t.Errorf("%d changes after opening a day later, want 1", n)
		}
		if got := ids(list(t, s, Filter{})); !slices.Equal(got, []string{kept}) {
			t.Errorf("kept %q, want %q", got, kept)
		}
		for content, want := range map[string]error{"a1": ErrNotKept, "a2": nil, "a3": nil} {
			if _, err := s.Content("p", BlobOf([]byte(content))); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", content, err, want)
			}
		}
		if u, _ := undo(t, s, Selection{Principal: "p", Last: 9}); len(u.Files) != 1 ||
			read(t, filepath.Join(files, "a")) != "a2" {
			t.Errorf("undo: %+v", u)
		}
	})
}

// TestTidiedOnce: only one of many changes that are made before the journal is tidied has it tidied.
func TestTidiedOnce(t *testing.T) {
	s := open(t, Config{Dir: filepath.Join(t.TempDir(), "history")})
	tidies := 0
	file := filepath.Join(t.TempDir(), "a")
	for i := range 2*tidyAfter - 1 {
		e := entry(t, s, Change{Path: file}, fmt.Sprint(i))
		if e.parts[0].full {
			tidies++
		}
	}
	if tidies != 1 {
		t.Errorf("the journal is tidied %d times for %d changes, want once", tidies, 2*tidyAfter-1)
	}
}

func TestOpenTidiesOnceAnHour(t *testing.T) {
	dir, files := filepath.Join(t.TempDir(), "history"), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Dir: dir}
		s := open(t, cfg)
		change(t, s, Change{Path: filepath.Join(files, "a")}, "1")
		j := s.section(sectionName("p"))
		for _, tt := range []struct {
			wait  time.Duration
			tidie bool
		}{{0, true}, {59 * time.Minute, false}, {time.Minute, true}} {
			time.Sleep(tt.wait)
			open(t, cfg)
			time.Sleep(tidyDelay)
			synctest.Wait()
			if got := statedir.TidiedAt(j.dir).Equal(time.Now()); got != tt.tidie {
				t.Errorf("after %v: tidied %v, want %v", tt.wait, got, tt.tidie)
			}
		}
		// A clock that was set back must not stop it.
		put(t, filepath.Join(j.dir, "tidied"), time.Now().Add(time.Hour).Format(time.RFC3339Nano))
		open(t, cfg)
		time.Sleep(tidyDelay)
		synctest.Wait()
		if !statedir.TidiedAt(j.dir).Equal(time.Now()) {
			t.Error("not tidied after a time in the future")
		}
	})
}

func TestQuota(t *testing.T) {
	dir, files := filepath.Join(t.TempDir(), "history"), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Config{Dir: dir, Quota: 1000})
		path := filepath.Join(files, "f")
		content := func(i int) string { return fmt.Sprintf("%100d", i) }
		for i := range 20 {
			change(t, s, Change{Path: path}, content(i))
		}
		if n := len(list(t, s, Filter{})); n != 20 {
			t.Errorf("%d changes, want all 20: they are young", n)
		}
		time.Sleep(youngest)
		change(t, s, Change{Path: path}, content(20))
		if err := s.tidyAll(); err != nil {
			t.Fatal(err)
		}
		// Of the newest nine changes both contents fit: ten contents of 100 bytes.
		if n := len(list(t, s, Filter{})); n != 9 {
			t.Errorf("%d changes, want 9", n)
		}
		if n := len(stored(t, s, packsName)); n != 10 {
			t.Errorf("%d contents, want 10", n)
		}
		if u, _ := undo(t, s, Selection{Principal: "p", Last: 99}); len(u.Refused) > 0 || read(t, path) != content(11) {
			t.Errorf("undo: %+v, %q", u, read(t, path))
		}
	})
}

func TestQuotaOfOthers(t *testing.T) {
	dir, files := filepath.Join(t.TempDir(), "history"), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Config{Dir: dir, Quota: 1000})
		change(t, s, Change{Principal: "q", Path: filepath.Join(files, "q")}, "of q")
		for i := range 100 {
			change(t, s, Change{Path: filepath.Join(files, "p")}, fmt.Sprintf("%100d", i))
			time.Sleep(time.Second)
		}
		time.Sleep(youngest)
		if err := s.tidyAll(); err != nil {
			t.Fatal(err)
		}
		if n := len(list(t, s, Filter{Principal: "q"})); n != 1 {
			t.Errorf("%d changes of the other principal, want 1", n)
		}
		if n := len(list(t, s, Filter{})); n != 10 {
			t.Errorf("%d changes of both, want 10", n)
		}
	})
}

// TestPackRemovedByAnother lets another process take a pack whose end is remembered: what is in it is stored again.
func TestPackRemovedByAnother(t *testing.T) {
	s := open(t, Config{Dir: filepath.Join(t.TempDir(), "history")})
	path := filepath.Join(t.TempDir(), "f")
	change(t, s, Change{Path: path}, "1")
	one := BlobOf([]byte("1"))
	if err := os.Remove(packOf(t, s, one)); err != nil {
		t.Fatal(err)
	}
	change(t, s, Change{Path: path}, "2")
	if got, err := s.Content("p", one); err != nil || string(got) != "1" {
		t.Errorf("%q, %v, want it there again", got, err)
	}
}

func TestForget(t *testing.T) {
	s := open(t, Config{Quota: 100, MaxFile: 25, MaxAge: time.Hour})
	now := time.Now()
	of := func(age time.Duration, state State, after string) record {
		b := BlobOf([]byte(after))
		r := record{Change: Change{Time: now.Add(-age), State: state, After: b}}
		if b.Size <= s.cfg.MaxFile {
			r.at[1] = location{Pack: b.Sum}
		}
		return r
	}
	big := func(c string) string { return fmt.Sprintf("%25s", c) }
	for _, tt := range []struct {
		name    string
		records []record
		want    int
	}{
		{"none", nil, 0},
		{"within", []record{of(2*time.Minute, Done, big("a")), of(0, Done, big("b"))}, 0},
		{"too old", []record{of(2*time.Hour, Done, "a"), of(time.Minute, Done, "b")}, 1},
		{"too old, and never ended", []record{of(2*time.Hour, Pending, "a"), of(time.Minute, Done, "b")}, 1},
		{"over, but young", []record{of(1, Done, big("a")), of(1, Done, big("b")), of(1, Done, big("c")), of(1, Done, big("d")), of(1, Done, big("e"))}, 0},
		{"over", []record{of(time.Minute, Done, big("a")), of(1, Done, big("b")), of(1, Done, big("c")), of(1, Done, big("d")), of(1, Done, big("e"))}, 1},
		{"over, but open", []record{of(time.Minute, Pending, big("a")), of(1, Done, big("b")), of(1, Done, big("c")), of(1, Done, big("d")), of(1, Done, big("e"))}, 0},
		{"shared", slices.Repeat([]record{of(time.Minute, Done, big("a"))}, 9), 0},
		{"not kept", slices.Repeat([]record{of(time.Minute, Done, big("too large"+big("")))}, 9), 0},
		{"too many", slices.Repeat([]record{of(time.Minute, Done, "a")}, maxChanges+3), 3},
		{"too many, the oldest of one entry", oneEntry(slices.Repeat([]record{of(time.Minute, Done, "a")}, maxChanges+9), 0, 12), 12},
		{"too many in the newest entry", oneEntry(slices.Repeat([]record{of(time.Minute, Done, "a")}, maxChanges+9), 1, maxChanges+9), 1},
	} {
		for i := range tt.records {
			if tt.records[i].ID == "" {
				tt.records[i].ID = fmt.Sprint(i)
			}
		}
		if got := s.cfg.forget(tt.records); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// oneEntry makes an entry of some of the records.
func oneEntry(records []record, from, to int) []record {
	for i := from; i < to; i++ {
		records[i].ID = "entry"
	}
	return records
}

// TestAStartDoesNotWaitForTidying holds that a host that starts looks at what is kept when its client has been answered, and when it
// ends before that.
func TestAStartDoesNotWaitForTidying(t *testing.T) {
	dir, files := filepath.Join(t.TempDir(), "history"), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Config{Dir: dir})
		change(t, s, Change{Path: filepath.Join(files, "a")}, "1")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		first := statedir.TidiedAt(s.section(sectionName("p")).dir)
		time.Sleep(2 * tidyEvery)
		s = open(t, Config{Dir: dir})
		j := s.section(sectionName("p"))
		if !statedir.TidiedAt(j.dir).Equal(first) {
			t.Error("the start has tidied the journal")
		}
		time.Sleep(2 * tidyDelay)
		synctest.Wait()
		second := statedir.TidiedAt(j.dir)
		if !second.After(first) {
			t.Error("nothing has tidied the journal since")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * tidyEvery)
		if err := open(t, Config{Dir: dir}).Close(); err != nil || !statedir.TidiedAt(j.dir).After(second) {
			t.Errorf("a host that ended at once has not tidied the journal (%v)", err)
		}
	})
}
