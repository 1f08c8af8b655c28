package history

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
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
	if raw := read(t, filepath.Join(s.cfg.Dir, journalName("p"), packsName, names[0])); len(raw) != want {
		t.Errorf("%d bytes, want %d", len(raw), want)
	}
}

// TestEndsAreWrittenSoon holds that an end is known at once to its own process, a moment later to others, and sooner where another
// change begins.
func TestEndsAreWrittenSoon(t *testing.T) {
	dir, files := filepath.Join(t.TempDir(), "history"), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, other := open(t, Config{Dir: dir}), open(t, Config{Dir: dir})
		index := filepath.Join(dir, journalName("p"), indexName)
		change(t, s, Change{Path: filepath.Join(files, "a")}, "1")
		if got := list(t, s, Filter{})[0].State; got != Done {
			t.Errorf("to its own process it is %s", got)
		}
		if strings.Contains(read(t, index), string(Done)) {
			t.Error("the end is written already")
		}
		if got := list(t, other, Filter{})[0].State; got != Done {
			t.Errorf("to another process it is %s", got)
		}
		change(t, s, Change{Path: filepath.Join(files, "b")}, "2")
		entry(t, s, Change{Path: filepath.Join(files, "c")}, "3")
		if n := strings.Count(read(t, index), string(Done)); n != 2 {
			t.Errorf("%d ends are written once the next change has begun, want 2", n)
		}
		time.Sleep(flushAfter)
		synctest.Wait()
		if n := strings.Count(read(t, index), "\n"); n != 5 {
			t.Errorf("%d lines, want each written once: 5", n)
		}
	})
}

// TestCloseWritesEnds holds that nothing is owed after a Store was closed.
func TestCloseWritesEnds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "history")
	s := open(t, Config{Dir: dir})
	change(t, s, Change{Path: filepath.Join(t.TempDir(), "f")}, "1")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := read(t, filepath.Join(dir, journalName("p"), indexName)); !strings.Contains(got, string(Done)) {
		t.Errorf("index: %q", got)
	}
	if owners, err := os.ReadDir(filepath.Join(dir, ownersName)); err != nil || len(owners) > 0 {
		t.Errorf("owners %v, %v", owners, err)
	}
}

// TestTakeBack holds that what is taken back is only what no one else was told of.
func TestTakeBack(t *testing.T) {
	p := &segmentWriter{dir: filepath.Join(t.TempDir(), packsName), owner: shortID(), limit: maxPack}
	defer p.close()
	put := func(content string) (Blob, location) {
		t.Helper()
		b := BlobOf([]byte(content))
		at, _, err := p.put(b, [][]byte{[]byte(content)}, false)
		if err != nil {
			t.Fatal(err)
		}
		return b, at
	}
	first, at := put("first")
	shared, atShared := put("shared")
	put("shared")
	p.takeBack(shared, atShared)
	p.takeBack(first, at) // which is no longer the last
	last, atLast := put("last")
	p.takeBack(last, atLast)
	for content, at := range map[string]location{"first": at, "shared": atShared} {
		if got, err := p.read(BlobOf([]byte(content)), at); string(got) != content || err != nil {
			t.Errorf("%s: %q, %v", content, got, err)
		}
	}
	if got, err := p.read(last, atLast); !errors.Is(err, ErrDamaged) {
		t.Errorf("what was taken back: %q, %v", got, err)
	}
}

// TestPacksOfManyPrincipals holds that no more packs are open than may be, and that each goes on.
func TestPacksOfManyPrincipals(t *testing.T) {
	s := open(t, Config{Dir: filepath.Join(t.TempDir(), "history")})
	dir := t.TempDir()
	var running sync.WaitGroup
	for i := range 3 * maxWriting {
		running.Go(func() {
			who := fmt.Sprintf("p%d", i)
			for n := range 3 {
				change(t, s, Change{Principal: who, Path: filepath.Join(dir, who)}, fmt.Sprint(n))
			}
		})
	}
	running.Wait()
	opened := 0
	for name, j := range s.journals {
		if j.packs.file == nil {
			continue
		}
		if opened++; !slices.Contains(s.writing, j) {
			t.Errorf("the pack of %s is open, and nobody will close it", name)
		}
	}
	if opened > maxWriting {
		t.Errorf("%d packs are open, want at most %d", opened, maxWriting)
	}
	if n := len(list(t, s, Filter{})); n != 9*maxWriting {
		t.Errorf("%d changes, want %d", n, 9*maxWriting)
	}
}
