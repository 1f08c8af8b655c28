package readstate

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

const fiveLines = "one\ntwo\nthree\nfour\nfive\n"

func sawWhole(sc *Scope, path string, v version) { sc.MarkRead(path, v, []byte(fiveLines)) }

// sawPages shows lines 1 to 2 and line 4 of fiveLines.
func sawPages(sc *Scope, path string, v version) {
	sc.MarkPartRead(path, v, Part{FirstLine: 1, Lines: 2, Start: 0}, []byte("one\ntwo\n"))
	sc.MarkPartRead(path, v, Part{FirstLine: 4, Lines: 1, Start: 14}, []byte("four\n"))
}

// sawAllPages shows fiveLines in two pages, the later one first.
func sawAllPages(sc *Scope, path string, v version) {
	sc.MarkPartRead(path, v, Part{FirstLine: 3, Lines: 3, Start: 8}, []byte("three\nfour\nfive\n"))
	sc.MarkPartRead(path, v, Part{FirstLine: 1, Lines: 2, Start: 0}, []byte("one\ntwo\n"))
}

func TestCheck(t *testing.T) {
	type want struct {
		State   state
		Whole   bool
		Old     string
		Parts   int
		Changed []string // the bytes as they were shown
	}
	rewrite := func(content string, mtime time.Time) func(testing.TB, string) {
		return func(t testing.TB, path string) { write(t, path, content, mtime) }
	}
	later := noon.Add(time.Second)
	tests := []struct {
		name   string
		saw    func(*Scope, string, version)
		change func(testing.TB, string)
		want   want
	}{
		{name: "never read", want: want{}},
		{name: "whole", saw: sawWhole, want: want{State: Current, Whole: true, Old: fiveLines}},
		{
			name: "whole, touched", saw: sawWhole, change: rewrite(fiveLines, later),
			want: want{State: Current, Whole: true, Old: fiveLines},
		},
		{
			name: "whole, same time and size, other bytes", saw: sawWhole, change: rewrite("ONE"+fiveLines[3:], noon),
			want: want{State: stale, Whole: true, Old: fiveLines},
		},
		{
			name: "whole, now empty", saw: sawWhole, change: rewrite("", later),
			want: want{State: stale, Whole: true, Old: fiveLines},
		},
		{
			name: "whole, replaced by another file of the same bytes", saw: sawWhole,
			change: func(t testing.TB, path string) {
				write(t, path+".new", fiveLines, later)
				if err := os.Rename(path+".new", path); err != nil {
					t.Fatal(err)
				}
			},
			want: want{State: Current, Whole: true, Old: fiveLines},
		},
		{name: "pages", saw: sawPages, want: want{State: Current, Parts: 2}},
		{name: "pages, appended", saw: sawPages, change: rewrite(fiveLines+"six\n", later), want: want{State: Current, Parts: 2}},
		{name: "pages, changed between", saw: sawPages, change: rewrite(strings.Replace(fiveLines, "three", "THREE", 1), later), want: want{State: Current, Parts: 2}},
		{
			name: "pages, one changed", saw: sawPages,
			change: rewrite(strings.Replace(fiveLines, "four", "FOUR", 1), noon),
			want:   want{State: stale, Parts: 1, Changed: []string{"four\n"}},
		},
		{
			name: "pages, one moved", saw: sawPages,
			change: rewrite(strings.Replace(fiveLines, "three", "3", 1), later),
			want:   want{State: stale, Parts: 1, Changed: []string{"four\n"}},
		},
		{
			name: "pages, cut short", saw: sawPages, change: rewrite("one\ntwo\nth", later),
			want: want{State: stale, Parts: 1, Changed: []string{"four\n"}},
		},
		{name: "pages without a gap", saw: sawAllPages, want: want{State: Current, Whole: true, Parts: 2}},
		{name: "pages without a gap, appended", saw: sawAllPages, change: rewrite(fiveLines+"six\n", later), want: want{State: Current, Parts: 2}},
		{
			name: "forgotten",
			saw: func(sc *Scope, path string, v version) {
				sawWhole(sc, path, v)
				sc.Forget(path)
			},
			want: want{},
		},
		{
			name: "page of the version read whole",
			saw: func(sc *Scope, path string, v version) {
				sawWhole(sc, path, v)
				sawPages(sc, path, v)
			},
			want: want{State: Current, Whole: true, Old: fiveLines},
		},
		{
			name: "page of another version than read whole",
			saw: func(sc *Scope, path string, v version) {
				sc.MarkRead(path, v, []byte("older"))
				v.ModTime = v.ModTime.Add(time.Second)
				sawPages(sc, path, v)
			},
			want: want{State: Current, Parts: 2},
		},
		{
			name: "whole after pages of another version",
			saw: func(sc *Scope, path string, v version) {
				sc.MarkPartRead(path, v, Part{FirstLine: 1, Lines: 1}, []byte("older"))
				sawWhole(sc, path, v)
			},
			want: want{State: Current, Whole: true, Old: fiveLines},
		},
		{
			name: "impossible page",
			saw:  func(sc *Scope, path string, v version) { sc.MarkPartRead(path, v, Part{Start: -1}, []byte("x")) },
			want: want{},
		},
	}
	for _, tt := range tests {
		for _, exact := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/exact=%v", tt.name, exact), func(t *testing.T) {
				sc := open(t, Config{Dir: t.TempDir()}).Scope("k", exact)
				path := filepath.Join(t.TempDir(), "f")
				v := write(t, path, fiveLines, noon)
				if tt.saw != nil {
					tt.saw(sc, path, v)
				}
				if tt.change != nil {
					tt.change(t, path)
				}
				st := check(t, sc, path)
				got := want{State: st.State, Whole: st.Whole, Old: string(st.Old), Parts: len(st.Parts)}
				for _, c := range st.Changed {
					got.Changed = append(got.Changed, string(c.Old))
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			})
		}
	}
}

func TestEmptyFile(t *testing.T) {
	sc := open(t, Config{}).Scope("k", false)
	sc.MarkRead("/empty", version{}, nil)
	if st := sc.Check("/empty", nil, []byte{}); st.State != Current || st.Old == nil {
		t.Errorf("empty file: %+v, want current with an old content that is known to be empty", st)
	}
	if st := sc.Check("/empty", nil, []byte("x")); st.State != stale || st.Old == nil || len(st.Old) != 0 {
		t.Errorf("filled file: %+v, want drifted from an empty content", st)
	}
}

// TestTouchedBetweenPages is the sequence page, touch, look, page: the look tells the scope that nothing changed.
func TestTouchedBetweenPages(t *testing.T) {
	sc := open(t, Config{}).Scope("k", false)
	path := filepath.Join(t.TempDir(), "f")
	sc.MarkPartRead(path, write(t, path, fiveLines, noon), Part{FirstLine: 1, Lines: 2}, []byte("one\ntwo\n"))
	touched := write(t, path, fiveLines, noon.Add(time.Second))
	if st := check(t, sc, path); st.State != Current {
		t.Fatalf("touched: %v, want current", st.State)
	}
	sc.MarkPartRead(path, touched, Part{FirstLine: 3, Lines: 3, Start: 8}, []byte("three\nfour\nfive\n"))
	if st := check(t, sc, path); !st.Whole || len(st.Parts) != 2 {
		t.Errorf("after the second page: %+v, want both pages", st)
	}
}

// TestElsewhere: a change outside the pages that were shown is told until the file is read again, and after a restart.
func TestElsewhere(t *testing.T) {
	for _, hashed := range []bool{false, true} {
		dir, path := t.TempDir(), filepath.Join(t.TempDir(), "f")
		store := open(t, Config{Dir: dir})
		sc := store.Scope("p\x00exact\x00a", true)
		show := func(sc *Scope) {
			v := VersionOf(stat(t, path))
			if hashed {
				content, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				v.Hash, v.Hashed = HashOf(content), true
			}
			sc.MarkPartRead(path, v, Part{FirstLine: 1, Lines: 1}, []byte("one\n"))
		}
		want := func(sc *Scope, elsewhere bool, when string) {
			t.Helper()
			if st := check(t, sc, path); st.State != Current || st.Elsewhere != elsewhere {
				t.Errorf("hashed %v, %s: %+v", hashed, when, st)
			}
		}
		write(t, path, fiveLines, noon)
		show(sc)
		want(sc, false, "as it was")
		write(t, path, strings.Replace(fiveLines, "five", "FIVE", 1), noon) // the time is put back
		for range 2 {
			want(sc, true, "changed")
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		sc = open(t, Config{Dir: dir}).Scope("p\x00exact\x00a", true)
		want(sc, true, "after a restart")
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sc.Changed(path, VersionOf(stat(t, path)), check(t, sc, path).Elsewhere, content)
		want(sc, true, "changed by the scope itself")
		show(sc)
		want(sc, false, "read again")
	}
}

// TestCharset: the encoding that was determined for a version of a file is kept for its pages and after a restart, and is
// not used for other versions.
func TestCharset(t *testing.T) {
	dir := t.TempDir()
	store := open(t, Config{Dir: dir})
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, fiveLines, noon)
	sc := store.Scope("p\x00exact\x00a", true)
	v := VersionOf(stat(t, path))
	if got := sc.Charset(path, v); got != "" {
		t.Errorf("before: %q", got)
	}
	known := v
	known.Charset = "koi8-r"
	sawWhole(sc, path, known)
	for _, again := range []func(*Scope, string, version){sawWhole, sawPages} {
		if again(sc, path, v); sc.Charset(path, v) != "koi8-r" {
			t.Errorf("shown again: %q", sc.Charset(path, v))
		}
	}
	if st := check(t, sc, path); st.State != Current || st.Charset != "koi8-r" {
		t.Errorf("%+v", st)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	sc = open(t, Config{Dir: dir}).Scope("p\x00exact\x00a", true)
	if got := sc.Charset(path, v); got != "koi8-r" {
		t.Errorf("after a restart: %q", got)
	}
	write(t, path, fiveLines, noon.Add(time.Second))
	if got := sc.Charset(path, VersionOf(stat(t, path))); got != "" {
		t.Errorf("of another version: %q", got)
	}
	if sawWhole(sc, path, VersionOf(stat(t, path))); sc.Charset(path, VersionOf(stat(t, path))) != "" {
		t.Errorf("of another version, shown: %q", sc.Charset(path, v))
	}
}

func TestHashedPages(t *testing.T) {
	sc := open(t, Config{}).Scope("k", false)
	v := version{ModTime: noon, Hash: HashOf([]byte(fiveLines)), Hashed: true}
	sc.MarkPartRead("/f", v, Part{FirstLine: 1, Lines: 1}, []byte("one\n"))
	v.ModTime = noon.Add(time.Second)
	sc.MarkPartRead("/f", v, Part{FirstLine: 2, Lines: 1, Start: 4}, []byte("two\n"))
	if st := sc.Check("/f", nil, []byte(fiveLines)); !st.Covers(1, 2) {
		t.Errorf("after a touch: %+v, want lines 1 and 2", st)
	}
	v.Hash = HashOf([]byte("another"))
	sc.MarkPartRead("/f", v, Part{FirstLine: 3, Lines: 1, Start: 8}, []byte("three\n"))
	if st := sc.Check("/f", nil, []byte(fiveLines)); st.Covers(1, 1) || !st.Covers(3, 3) {
		t.Errorf("after a change: %+v, want line 3 alone", st)
	}
}

func TestExcerpt(t *testing.T) {
	sc := open(t, Config{}).Scope("k", false)
	excerpt := func() { sc.MarkExcerptRead("/f", version{}, Part{FirstLine: 2, Lines: 1, Start: 4}, []byte("two\n")) }
	page := func() { sc.MarkPartRead("/f", version{}, Part{FirstLine: 1, Lines: 1}, []byte("one\n")) }
	for _, step := range []struct {
		name string
		do   func()
		want bool
	}{
		{"an excerpt", excerpt, true}, {"another", excerpt, true}, {"a page", page, false}, {"an excerpt after it", excerpt, false},
		{"all of it", func() { sawWhole(sc, "/f", version{}) }, false}, {"an excerpt after that", excerpt, false},
	} {
		step.do()
		if st := sc.Check("/f", nil, []byte(fiveLines)); st.State != Current || !st.Covers(2, 2) ||
			st.Excerpt != step.want {
			t.Errorf("%s: %+v, want Excerpt %v", step.name, st, step.want)
		}
	}
}

func TestScopesAreApart(t *testing.T) {
	s := open(t, Config{})
	s.Scope("a", false).MarkRead("/f", version{}, []byte("x"))
	if st := s.Scope("b", false).Check("/f", nil, []byte("x")); st.State != Unread {
		t.Errorf("another scope: %v, want unread", st.State)
	}
}

func TestCovers(t *testing.T) {
	pages := []Part{{FirstLine: 10, Lines: 5}, {FirstLine: 1, Lines: 3}, {FirstLine: 4, Lines: 2},
		{FirstLine: 12, Lines: 10}}
	tests := []struct {
		name        string
		st          Status
		first, last int
		want        bool
	}{
		{"unread", Status{}, 1, 1, false},
		{"whole", Status{State: Current, Whole: true}, 7, 9000, true},
		{"whole, drifted", Status{State: stale, Whole: true}, 1, 1, false},
		{"one page", Status{State: Current, Parts: pages}, 2, 3, true},
		{"two pages that touch", Status{State: Current, Parts: pages}, 1, 5, true},
		{"a gap", Status{State: Current, Parts: pages}, 5, 10, false},
		{"overlapping pages", Status{State: Current, Parts: pages}, 10, 21, true},
		{"beyond the last", Status{State: Current, Parts: pages}, 20, 22, false},
		{"a page in place though another drifted", Status{State: stale, Parts: pages}, 1, 3, true},
		{"line 0", Status{State: Current, Whole: true}, 0, 3, false},
		{"backwards", Status{State: Current, Whole: true}, 3, 2, false},
	}
	for _, tt := range tests {
		if got := tt.st.Covers(tt.first, tt.last); got != tt.want {
			t.Errorf("%s: Covers(%d, %d) = %v, want %v", tt.name, tt.first, tt.last, got, tt.want)
		}
	}
}

func TestBounds(t *testing.T) {
	t.Run("pages of a file", func(t *testing.T) {
		sc := open(t, Config{}).Scope("k", false)
		content := bytes.Repeat([]byte("x\n"), maxParts+10)
		for i := range maxParts + 10 {
			sc.MarkPartRead("/f", version{}, Part{FirstLine: i + 1, Lines: 1, Start: int64(2 * i)}, []byte("x\n"))
		}
		st := sc.Check("/f", nil, content)
		if len(st.Parts) != maxParts || st.Covers(10, 11) || !st.Covers(11, maxParts+10) {
			t.Errorf("%d pages, want the last %d", len(st.Parts), maxParts)
		}
	})
	t.Run("the same page again", func(t *testing.T) {
		sc := open(t, Config{}).Scope("k", false)
		for range 3 {
			sc.MarkPartRead("/f", version{}, Part{FirstLine: 1, Lines: 1}, []byte("x\n"))
		}
		if st := sc.Check("/f", nil, []byte("x\n")); len(st.Parts) != 1 {
			t.Errorf("%d pages, want 1", len(st.Parts))
		}
	})
	t.Run("files of a scope", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			sc := open(t, Config{MaxFiles: 3}).Scope("k", false)
			for i := range 5 {
				sc.MarkRead(fmt.Sprint(i), version{}, nil)
				time.Sleep(time.Second)
			}
			for i := range 5 {
				if got, want := sc.Check(fmt.Sprint(i), nil, nil).State == Current, i >= 2; got != want {
					t.Errorf("file %d known: %v, want %v", i, got, want)
				}
			}
		})
	})
	t.Run("scopes", func(t *testing.T) {
		s := open(t, Config{MaxScopes: 2})
		for _, key := range []string{"a", "b", "c"} {
			s.Scope(key, false).MarkRead("/f", version{}, nil)
		}
		if got := s.Scope("a", false).Check("/f", nil, nil).State; got != Unread {
			t.Errorf("least recently used scope: %v, want unread", got)
		}
		if got := s.Scope("c", false).Check("/f", nil, nil).State; got != Current {
			t.Errorf("most recently used scope: %v, want current", got)
		}
	})
}

func TestKeptContents(t *testing.T) {
	a, b, c := []byte("aaaa"), []byte("bbbb"), []byte("cccc")
	drift := func(sc *Scope, path string) []byte { return sc.Check(path, nil, []byte("other")).Old }
	tests := []struct {
		name string
		cfg  Config
		want map[string][]byte
	}{
		{"room for all", Config{}, map[string][]byte{"/a": a, "/b": b, "/c": c}},
		{"room for two", Config{MaxKept: 8}, map[string][]byte{"/a": a, "/b": nil, "/c": c}},
		{"each too large", Config{MaxFile: 3}, map[string][]byte{"/a": nil, "/b": nil, "/c": nil}},
		{"none", Config{MaxKept: -1}, map[string][]byte{"/a": nil, "/b": nil, "/c": nil}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t, tt.cfg)
			s.Scope("1", false).MarkRead("/a", version{}, a)
			s.Scope("2", false).MarkRead("/b", version{}, b)
			drift(s.Scope("1", false), "/a") // used after b
			s.Scope("3", false).MarkRead("/c", version{}, c)
			got := map[string][]byte{
				"/a": drift(s.Scope("1", false), "/a"), "/b": drift(s.Scope("2", false), "/b"), "/c": drift(s.Scope("3", false), "/c"),
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("kept (-want +got)\n%s", diff)
			}
			if st := s.Scope("2", false).Check("/b", nil, b); st.State != Current {
				t.Errorf("unchanged file: %v, want current whether kept or not", st.State)
			}
		})
	}
}

// TestContentIsCopied holds the caller's right to reuse its buffer.
func TestContentIsCopied(t *testing.T) {
	sc := open(t, Config{}).Scope("k", false)
	buffer := []byte("before")
	sc.MarkRead("/f", version{}, buffer)
	copy(buffer, "AFTER!")
	if st := sc.Check("/f", nil, buffer); st.State != stale || string(st.Old) != "before" {
		t.Errorf("%v from %q, want drifted from \"before\"", st.State, st.Old)
	}
}

func TestIdleScopesAreCollected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Config{IdleScopes: time.Hour})
		idle, busy := s.Scope("idle", false), s.Scope("busy", false)
		idle.MarkRead("/f", version{}, nil)
		for range 3 {
			busy.MarkRead("/f", version{}, nil)
			time.Sleep(30 * time.Minute)
		}
		if got := idle.Check("/f", nil, nil).State; got != Unread {
			t.Errorf("idle scope: %v, want unread", got)
		}
		if got := busy.Check("/f", nil, nil).State; got != Current {
			t.Errorf("busy scope: %v, want current", got)
		}
	})
}

func TestConcurrentUse(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir(), MaxFiles: 20, MaxScopes: 3, MaxKept: 100})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				sc := s.Scope(fmt.Sprint(i%5), i%2 == 0)
				path, content := fmt.Sprint("/", i%30), fmt.Append(nil, g)
				sc.MarkRead(path, version{}, content)
				sc.MarkPartRead(path, version{}, Part{FirstLine: 1, Lines: 1}, content)
				sc.Check(path, nil, content)
				if i%7 == 0 {
					sc.Forget(path)
				}
				if i%50 == 0 {
					if err := s.flush(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkCheck(b *testing.B) {
	content := bytes.Repeat([]byte("0123456789abcde\n"), 1<<16)
	for _, bb := range []struct {
		name string
		cfg  Config
	}{{"kept", Config{}}, {"hashed", Config{MaxKept: -1}}} {
		b.Run(bb.name, func(b *testing.B) {
			sc := open(b, bb.cfg).Scope("k", false)
			sc.MarkRead("/f", version{}, content)
			b.SetBytes(int64(len(content)))
			again := bytes.Clone(content)
			for b.Loop() {
				if sc.Check("/f", nil, again).State != Current {
					b.Fatal("not current")
				}
			}
		})
	}
	b.Run("page", func(b *testing.B) {
		sc := open(b, Config{}).Scope("k", false)
		sc.MarkPartRead("/f", version{}, Part{FirstLine: 1001, Lines: 2000, Start: 16_000}, content[16_000:48_000])
		for b.Loop() {
			if sc.Check("/f", nil, content).State != Current {
				b.Fatal("not current")
			}
		}
	})
}

// TestScopesOfOneDoNotPushOutAnothers makes many scopes of one owner: what another has read stays read.
func TestScopesOfOneDoNotPushOutAnothers(t *testing.T) {
	for name, exact := range map[string]bool{"shared": false, "exact": true} {
		s := open(t, Config{MaxScopes: 8})
		sawWhole(s.Scope("alice\x00principal\x00", exact), "/f", version{})
		sawWhole(s.Scope("alice\x00threadId\x00x", exact), "/f", version{})
		for i := range 50 {
			sawWhole(s.Scope(fmt.Sprintf("bob\x00threadId\x00%d", i), exact), "/f", version{})
		}
		for _, key := range []string{"alice\x00principal\x00", "alice\x00threadId\x00x", "bob\x00threadId\x0049"} {
			if _, ok := s.scopes[key]; !ok {
				t.Errorf("%s: %q was pushed out", name, key)
			}
		}
		if len(s.scopes) != 8 || s.byUse.Len() != 8 || s.of["alice"] != 2 || s.of["bob"] != 6 {
			t.Errorf("%s: %d scopes, of %v", name, len(s.scopes), s.of)
		}
	}
}
