package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestChangesInARowAreWrittenOnce holds that of a row of changes of a file each content is written once, though it is what one change
// leaves and the next one finds.
func TestChangesInARowAreWrittenOnce(t *testing.T) {
	s := open(t, Config{Dir: filepath.Join(t.TempDir(), "history")})
	path := filepath.Join(t.TempDir(), "f")
	want := 0
	for i := range 20 {
		content := fmt.Sprintf("content %d", i)
		want += len(content)
		change(t, s, Change{Path: path}, content)
	}
	names := stored(t, s, packsName)
	if len(names) != 1 {
		t.Fatalf("packs %q, want one", names)
	}
	if raw := read(t, filepath.Join(s.cfg.Dir, sectionName("p"), packsName, names[0])); len(raw) != want {
		t.Errorf("%d bytes, want %d", len(raw), want)
	}
}

// TestEndsAreKnownAtOnce holds that other processes see at once that a change has begun and how it ended, with one line for a change.
func TestEndsAreKnownAtOnce(t *testing.T) {
	dir, files := filepath.Join(t.TempDir(), "history"), t.TempDir()
	s, other := open(t, Config{Dir: dir}), open(t, Config{Dir: dir})
	s.still() // else they tidy a second after their start
	other.still()
	path := filepath.Join(files, "a")
	var want []State // newest first
	check := func() {
		t.Helper()
		for _, s := range []*Journal{s, other} {
			for i, c := range list(t, s, Filter{}) {
				if c.State != want[i] {
					t.Errorf("change %d is %s, want it %s", i, c.State, want[i])
				}
			}
		}
	}
	for i, end := range []func(*Entry) error{endOf, (*Entry).Abort, endOf} {
		e := entry(t, s, Change{Path: path}, fmt.Sprint(i))
		want = append([]State{Pending}, want...)
		check()
		if err := end(e); err != nil {
			t.Fatal(err)
		}
		want[0] = []State{Done, Failed, Done}[i]
		check()
	}
	if n := strings.Count(read(t, filepath.Join(dir, sectionName("p"), indexName)), "\n"); n != 4 {
		t.Errorf("%d lines, want 4", n)
	}
}

// TestCloseLeaves holds that a Journal without open changes leaves no owner.
func TestCloseLeaves(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "history")
	s := open(t, Config{Dir: dir})
	change(t, s, Change{Path: filepath.Join(t.TempDir(), "f")}, "1")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if owners, err := os.ReadDir(filepath.Join(dir, ownersName)); err != nil || len(owners) > 0 {
		t.Errorf("owners %v, %v", owners, err)
	}
}

// TestRollback holds that what a failed entry has put is taken back, and that what was there before stays and is not stored again.
func TestRollback(t *testing.T) {
	p := &packs{dir: filepath.Join(t.TempDir(), packsName), owner: shortID(), limit: 12}
	put := func(content string) location {
		t.Helper()
		at, err := p.put(BlobOf([]byte(content)), [][]byte{[]byte(content)})
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	p.rollback(p.number, p.end) // nothing was put
	first := put("first")
	p.close()
	number, end := p.number, p.end
	last := []location{put("second, long"), put("third")} // in the same pack and in the next
	p.rollback(number, end)
	for i, content := range []string{"second, long", "third"} {
		if got, err := p.read(BlobOf([]byte(content)), last[i]); err == nil {
			t.Errorf("what was taken back: %q", got)
		}
	}
	put("fourth")
	if got, err := p.read(BlobOf([]byte("first")), first); string(got) != "first" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got := p.size(); got != int64(len("firstfourth")) {
		t.Errorf("the packs have %d bytes", got)
	}
	p.close()
}
