package resultstore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestQuota(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir(), Quota: 100, MaxOne: 40})
	sh := s.For("p")
	elsewhere := keep(t, s.For("q"), 40, 5*time.Hour)
	oldest, older, young := keep(t, sh, 40, 3*time.Hour), keep(t, sh, 30, 2*time.Hour), keep(t, sh, 10, 0)

	f, err := sh.Create("bash") // makes room for 40
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for path, want := range map[string]bool{oldest: false, older: true, young: true, elsewhere: true} {
		if got := exists(path); got != want {
			t.Errorf("%s exists: %v, want %v", path, got, want)
		}
	}
	if n, err := f.Write(make([]byte, 60)); n != 40 || !errors.Is(err, errTooLarge) {
		t.Errorf("Write = %d, %v, want 40 and errTooLarge", n, err)
	}
	if k := f.Kept(); k.Stored != 40 || !errors.Is(k.Err, errTooLarge) {
		t.Errorf("stored %d, %v, want 40 and errTooLarge", k.Stored, k.Err)
	}
}

// TestQuotaIsShared writes several results at once, each of which alone would have had room, next to one that can go.
func TestQuotaIsShared(t *testing.T) {
	sh := open(t, Config{Dir: t.TempDir(), Quota: 100, MaxOne: 60}).For("p")
	old := keep(t, sh, 30, time.Hour)
	files := make([]*file, 4)
	for i := range files {
		var err error
		if files[i], err = sh.Create("bash"); err != nil {
			t.Fatal(err)
		}
	}
	var writers sync.WaitGroup
	for _, f := range files {
		writers.Go(func() {
			for range 60 {
				if n, err := f.Write([]byte("x")); err != nil && !errors.Is(err, errQuota) || n > 1 {
					t.Errorf("Write = %d, %v", n, err)
				}
			}
		})
	}
	writers.Wait()
	var stored int64
	longest := files[0]
	for _, f := range files {
		k := f.Kept()
		stored += k.Stored
		if k.Stored > longest.Kept().Stored {
			longest = f
		}
		if k.Stored < 60 && !errors.Is(k.Err, errQuota) {
			t.Errorf("kept %+v", k)
		}
	}
	if stored != 100 || exists(old) {
		t.Errorf("%d bytes are stored, the old result exists: %v; want 100, and room made of it", stored, exists(old))
	}
	if err := longest.Discard(); err != nil {
		t.Fatal(err)
	}
	if _, err := sh.Create("bash"); err != nil {
		t.Errorf("after one was discarded: %v", err)
	}
}

// TestQuotaOfYoungAndUnfinished fills the quota with what must stay.
func TestQuotaOfYoungAndUnfinished(t *testing.T) {
	sh := open(t, Config{Dir: t.TempDir(), Quota: 100, MaxOne: 60}).For("p")
	unfinished, err := sh.Create("bash")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unfinished.Write(make([]byte, 60)); err != nil {
		t.Fatal(err)
	}
	makeOlder(t, unfinished.Path(), 240*time.Hour)
	partly, err := sh.Create("bash")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := partly.Write(make([]byte, 60)); n != 40 || !errors.Is(err, errQuota) {
		t.Errorf("Write = %d, %v, want 40 and errQuota", n, err)
	}
	if k := partly.Kept(); k.Stored != 40 || !errors.Is(k.Err, errQuota) {
		t.Errorf("stored %d, %v, want the 40 that were left and errQuota", k.Stored, k.Err)
	}
	if err := partly.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := sh.Create("bash"); !errors.Is(err, errQuota) {
		t.Errorf("no room left: %v, want errQuota", err)
	}
	got, err := sh.Fit(numbered(1, 100), 50)
	if !errors.Is(err, errQuota) || !got.Cut || got.Path != "" ||
		!strings.Contains(got.Text, "not kept: "+errQuota.Error()) {
		t.Errorf("Fit: %+v, %v, want it cut, not kept, and said", got, err)
	}
	if !exists(unfinished.Path()) || !exists(partly.Path()) {
		t.Error("a young or unfinished result was removed")
	}
	if err := unfinished.Close(); err != nil {
		t.Fatal(err)
	}
	makeOlder(t, unfinished.Path(), 2*time.Minute)
	if _, err := sh.Create("bash"); err != nil || exists(unfinished.Path()) {
		t.Errorf("once finished: %v, exists %v, want room made of it", err, exists(unfinished.Path()))
	}
}

func TestAge(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Config{Dir: dir})
	sh, gone := s.For("p"), s.For("gone")
	old, fresh, last := keep(t, sh, 1, 8*24*time.Hour), keep(t, sh, 1, 6*24*time.Hour), keep(t, gone, 1, 8*24*time.Hour)
	makeOlder(t, gone.Dir(), 8*24*time.Hour)

	open(t, Config{Dir: dir})
	if !exists(old) {
		t.Error("it was looked for twice within an hour, which a start waits for")
	}
	then := time.Now().Add(-tidyEvery).Format(time.RFC3339Nano)
	if err := os.WriteFile(filepath.Join(dir, "tidied"), []byte(then), 0o600); err != nil {
		t.Fatal(err)
	}
	second := open(t, Config{Dir: dir})
	if exists(old) || exists(last) || !exists(fresh) {
		t.Errorf("at Open: old %v, last %v, fresh %v, want only the fresh one", exists(old), exists(last),
			exists(fresh))
	}
	makeOlder(t, fresh, 8*24*time.Hour)
	keep(t, second.For("p"), 1, 0)
	if exists(fresh) {
		t.Error("at Create: the result that became too old is still there")
	}
}

// fill puts n results of one byte and some age in a directory.
func fill(t testing.TB, sh *PrincipalStore, n int) {
	t.Helper()
	for i := range n {
		path := filepath.Join(sh.Dir(), fileName("bash"))
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		makeOlder(t, path, time.Hour+time.Duration(i)*time.Second)
	}
}

// TestDiscardedResultsAreNotCounted holds that a directory does not seem to fill up with results that were not needed.
func TestDiscardedResultsAreNotCounted(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir()})
	sh := s.For("p")
	keep(t, sh, 1, 0)
	for range 3 {
		f, err := sh.Create("bash")
		if err == nil {
			err = f.Discard()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if u := s.usageOf(filepath.Base(sh.Dir())); u.files != 1 || u.bytes != 1 {
		t.Errorf("%d bytes in %d files are counted, want 1 in 1", u.bytes, u.files)
	}
}

func TestNumberOfResults(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	sh := open(t, Config{Dir: t.TempDir()}).For("p")
	fill(t, sh, maxResults+5)
	keep(t, sh, 1, 0)
	if got := len(everything(t, sh.Dir())); got != maxResults {
		t.Errorf("%d results, want %d", got, maxResults)
	}
}
