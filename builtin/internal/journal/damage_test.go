package journal

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestDamagedIndex damages the index at every byte, and cuts it at every byte.
func TestDamagedIndex(t *testing.T) {
	s := open(t, Config{Dir: filepath.Join(t.TempDir(), "history")})
	path := filepath.Join(t.TempDir(), "f")
	for i := range 3 {
		change(t, s, Change{Tool: "Write", Scope: "s", Path: path}, fmt.Sprint(i))
	}
	index := filepath.Join(s.cfg.Dir, sectionName("p"), indexName)
	whole := []byte(read(t, index))
	all := parseIndex(whole).records
	lines := bytes.Count(whole, []byte("\n"))
	for i := range whole {
		bad := bytes.Clone(whole)
		bad[i] ^= 0x04
		x := parseIndex(bad)
		least := 2
		if whole[i] == '\n' {
			least = 1 // two lines became one; the copy has them
		}
		if n := len(x.damaged); n < 1 || n > 2 || len(x.records) < least {
			t.Fatalf("damaged at %d: %d changes, %d of %d lines damaged", i, len(x.records), n, lines)
		}
		checkSome(t, x.records, all)
		x = parseIndex(whole[:i])
		if len(x.damaged) > 1 {
			t.Fatalf("cut at %d: %d lines damaged", i, len(x.damaged))
		}
		checkSome(t, x.records, all)
	}
}

// checkSome holds that what was read of a damaged index is part of what was written, but for ends that are missing.
func checkSome(t *testing.T, some, all []record) {
	t.Helper()
	for _, r := range some {
		i := slices.IndexFunc(all, func(a record) bool { return a.ID == r.ID })
		if i < 0 {
			t.Fatalf("%+v was never written", r)
		}
		if diff := cmp.Diff(all[i].Change, r.Change, cmpopts.IgnoreFields(Change{}, "State")); diff != "" ||
			r.State != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
	}
}

func TestTornLineIsMended(t *testing.T) {
	s := open(t, Config{Dir: filepath.Join(t.TempDir(), "history")})
	path := filepath.Join(t.TempDir(), "f")
	change(t, s, Change{Path: path}, "1")
	index := filepath.Join(s.cfg.Dir, sectionName("p"), indexName)
	put(t, index, read(t, index)+`01234567 {"id":"torn`)
	change(t, s, Change{Path: path}, "2")
	if got := list(t, s, Filter{}); len(got) != 2 || got[0].State != Done {
		t.Errorf("%+v, want both changes", got)
	}
	if err := s.tidyAll(); err != nil {
		t.Fatal(err)
	}
	if got := read(t, index); strings.Contains(got, "torn") || strings.Count(got, "\n") != 2 {
		t.Errorf("after tidying: %q", got)
	}
	aside := stored(t, s, asideName)
	if len(aside) != 1 || !strings.Contains(read(t, filepath.Join(s.cfg.Dir, sectionName("p"), asideName, aside[0])), "torn") {
		t.Errorf("set aside: %q", aside)
	}
}

// TestDamagedContent damages what is kept, in every way a disk may.
func TestDamagedContent(t *testing.T) {
	for name, tt := range map[string]struct {
		damage func(path string) error
		want   error
	}{
		"flipped": {func(path string) error { return os.WriteFile(path, []byte("bne"), 0o600) }, ErrDamaged},
		"cut":     {func(path string) error { return os.Truncate(path, 1) }, ErrDamaged},
		"emptied": {func(path string) error { return os.Truncate(path, 0) }, ErrDamaged},
		"shifted": {func(path string) error { return os.WriteFile(path, []byte("the one"), 0o600) }, ErrDamaged},
		"removed": {os.Remove, ErrNotKept},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Config{Dir: filepath.Join(t.TempDir(), "history"), Quota: packShare}) // a pack for each
			path := filepath.Join(t.TempDir(), "f")
			change(t, s, Change{Path: path}, "one")
			change(t, s, Change{Path: path}, "two")
			one := BlobOf([]byte("one"))
			if err := tt.damage(packOf(t, s, one)); err != nil {
				t.Fatal(err)
			}
			if _, diff, err := s.Show("p", list(t, s, Filter{})[0].ID); err != nil ||
				!strings.Contains(diff[0], "no diff") {
				t.Errorf("Show: %q, %v", diff, err)
			}
			u, _ := undo(t, s, Selection{Principal: "p", Last: 1, Force: true})
			if len(u.Refused) != 1 || u.Refused[0].Forced || read(t, path) != "two" {
				t.Errorf("undo: %+v, want it refused", u)
			}
			if _, err := s.Content("p", one); !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			change(t, s, Change{Path: path}, "one")
			if got, err := s.Content("p", one); err != nil || string(got) != "one" {
				t.Errorf("once stored again: %q, %v", got, err)
			}
		})
	}
}

// packOf returns the pack in which a content of the principal "p" is.
func packOf(t fataler, s *Journal, b Blob) string {
	t.Helper()
	j := s.section(sectionName("p"))
	x, err := j.load()
	if err != nil {
		t.Fatalf("%v", err)
	}
	places := placesOf(x.records)[place{"p", b}]
	if len(places) == 0 {
		t.Fatalf("%s is nowhere", b)
	}
	return filepath.Join(j.packs.dir, places[0].Pack)
}

// TestCutContentIsStoredAgain holds that a content that a power loss cut short does not stay so when it comes again.
func TestCutContentIsStoredAgain(t *testing.T) {
	s := open(t, Config{Dir: filepath.Join(t.TempDir(), "history")})
	path := filepath.Join(t.TempDir(), "f")
	change(t, s, Change{Path: path}, "one")
	one := BlobOf([]byte("one"))
	if err := os.Truncate(packOf(t, s, one), 0); err != nil {
		t.Fatal(err)
	}
	change(t, s, Change{Path: path}, "two")
	undo(t, s, Selection{Principal: "p", Last: 1})
	if got := read(t, path); got != "one" {
		t.Errorf("undone: %q", got)
	}
}

// TestStrangeDirectories puts in the way what does not belong there.
func TestStrangeDirectories(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "history")
	s := open(t, Config{Dir: dir})
	path := filepath.Join(t.TempDir(), "f")
	change(t, s, Change{Path: path}, "1")
	for _, name := range []string{"notes.txt", "owners/readme", sectionName("x"), sectionName("p") + "/notes",
		sectionName("p") + "/tidied"} {
		put(t, filepath.Join(dir, name), "strange")
	}
	for _, name := range []string{sectionName("y"), sectionName("z") + "/index", "owners/aaaaaaaaaaaa",
		sectionName("p") + "/packs/sub/file"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	other := open(t, Config{Dir: dir})
	change(t, other, Change{Path: path}, "2")
	undo(t, other, Selection{Principal: "p", Last: 1})
	if got := read(t, path); got != "1" {
		t.Errorf("undone: %q", got)
	}
	for _, name := range []string{"notes.txt", "owners/readme", sectionName("p") + "/notes"} {
		if read(t, filepath.Join(dir, name)) != "strange" {
			t.Errorf("%s was touched", name)
		}
	}
}

func TestLinesRoundTrip(t *testing.T) {
	for name, c := range map[string]Change{
		"plain":     {Path: "/a", Scope: "s", Tool: "Edit"},
		"not UTF-8": {Path: "/\xff\xfe/\x80"},
		"strange":   {Path: "/a\nb\"<>\u2028\x01", Scope: "\n", Tool: "\x00"},
		"links":     {Path: "/a", Links: []string{"/b", "/\xff", "/\"c\xfe\"", "/d\n"}},
		"an undo":   {Path: "/a", UndoOf: []string{"aaaaaaaaaaaa", "bbbbbbbbbbbb"}},
	} {
		c.ID, c.Principal, c.State, c.Created, c.After = "abcdefgh2345", "p", Unknown, true, BlobOf([]byte("x"))
		raw, err := encode([]record{{Change: c, owner: "owner"}})
		if err != nil {
			t.Fatal(err)
		}
		x := parseIndex(raw)
		if len(x.records) != 1 {
			t.Fatalf("%s: %q", name, raw)
		}
		if diff := cmp.Diff(c, x.records[0].Change); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// FuzzIndex holds that no index makes the parser fail, and that what it reads of one can be written and read again.
func FuzzIndex(f *testing.F) {
	r := record{owner: "o", Change: Change{ID: "abcdefgh2345", Principal: "p", Path: "/f", State: Pending, After: BlobOf(nil)}}
	begun, err := encode([]record{r})
	if err != nil {
		f.Fatal(err)
	}
	ended, err := entryLine{ID: r.ID, State: Failed}.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(slices.Concat(begun, ended), 0, byte(0))
	f.Add(slices.Concat(begun, ended), 30, byte(1))
	f.Add(slices.Concat([]byte("\n"), begun[:20], begun, ended), 5, byte(0))
	f.Fuzz(func(t *testing.T, raw []byte, at int, flip byte) {
		if at >= 0 && at < len(raw) {
			raw[at] ^= flip
		}
		x := parseIndex(raw)
		var again []byte
		for _, r := range x.records {
			l, err := encode([]record{r})
			if err != nil {
				t.Fatalf("%+v: %v", r, err)
			}
			again = append(again, l...)
		}
		y := parseIndex(again)
		if diff := cmp.Diff(x.records, y.records, cmp.AllowUnexported(record{}), cmpopts.EquateEmpty()); diff != "" ||
			len(y.damaged) > 0 {
			t.Errorf("written and read again: %q (-want +got)\n%s", y.damaged, diff)
		}
	})
}

// FuzzLine fuzzes what stands after a checksum that is right.
func FuzzLine(f *testing.F) {
	for _, body := range []string{
		`{"id":"abcdefgh2345","state":"failed"}`,
		`{"id":"abcdefgh2345","principal":"p","files":[{"path":"/f","before":{"sum":"../../x","size":1}}]}`,
		`{"id":"../../abcdef","state":"done"}`,
		`{"id":"abcdefgh2345","state":"done","principal":"p","files":[{"path":"/f","raw_path":"/w=="}]}`,
		`[]`, `null`, ``,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if strings.ContainsRune(body, '\n') {
			return
		}
		raw := withChecksum([]byte(body))
		l, err := decodeLine(bytes.TrimSuffix(raw, []byte("\n")))
		if err != nil {
			return
		}
		if !idNames.MatchString(l.ID) {
			t.Errorf("%q was taken", body)
		}
		for _, f := range l.Files {
			if strings.ContainsAny(f.Before.Sum+f.After.Sum, `./\`) || f.Path == "" {
				t.Errorf("%q was taken", body)
			}
		}
	})
}

// TestIndexIsReadFromItsCopy damages the index in the ways a disk may, and then the copy. No change is lost, and it is told.
func TestIndexIsReadFromItsCopy(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"removed":   os.Remove,
		"emptied":   func(path string) error { return os.Truncate(path, 0) },
		"cut short": func(path string) error { return os.Truncate(path, 700) },
		"zeros":     func(path string) error { return os.WriteFile(path, make([]byte, 4000), 0o600) },
		"flipped": func(path string) error {
			raw, err := os.ReadFile(path)
			for i := 20; i < len(raw); i += 300 {
				raw[i] ^= 4
			}
			return errors.Join(err, os.WriteFile(path, raw, 0o600))
		},
		"a line lost": func(path string) error {
			raw, err := os.ReadFile(path)
			_, rest, _ := bytes.Cut(raw, []byte("\n"))
			return errors.Join(err, os.WriteFile(path, rest, 0o600))
		},
	} {
		for _, which := range []string{indexName, copyName} {
			t.Run(name+" "+which, func(t *testing.T) {
				dir, path := filepath.Join(t.TempDir(), "history"), filepath.Join(t.TempDir(), "f")
				synctest.Test(t, func(t *testing.T) { // else it is tidied a second after it is opened
					s := open(t, Config{Dir: dir})
					for i := range 9 {
						change(t, s, Change{Path: path}, fmt.Sprint(i))
						time.Sleep(time.Nanosecond) // no two are of the same time
					}
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
					want := ids(list(t, s, Filter{}))
					if err := damage(filepath.Join(dir, sectionName("p"), which)); err != nil {
						t.Fatal(err)
					}
					var log strings.Builder
					s = open(t, Config{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
					if got := ids(list(t, s, Filter{})); !slices.Equal(got, want) {
						t.Errorf("%d changes, want %d", len(got), len(want))
					}
					holds, err := s.Holdings()
					if err != nil || len(holds) != 1 || which == indexName && !holds[0].Damaged {
						t.Errorf("%+v, %v", holds, err)
					}
					undo(t, s, Selection{Principal: "p", IDs: want[:1]})
					if got := read(t, path); got != "7" {
						t.Errorf("undone: %q", got)
					}
					if err := s.Close(); err != nil { // it tidies
						t.Fatal(err)
					}
					told := strings.Contains(log.String(), "damaged")
					s = open(t, Config{Dir: dir})
					holds, err = s.Holdings()
					if err != nil || holds[0].Damaged || (holds[0].Aside != "") != told || which == indexName && !told {
						t.Errorf("%+v, %v, log %q", holds, err, &log)
					}
					if got := ids(list(t, s, Filter{})); !slices.Equal(got[1:], want) {
						t.Errorf("%d changes, want %d and the undo", len(got), len(want))
					}
				})
			})
		}
	}
}

// TestLostIndex: contents of changes that neither the index nor its copy has are set aside.
func TestLostIndex(t *testing.T) {
	dir, path := filepath.Join(t.TempDir(), "history"), filepath.Join(t.TempDir(), "f")
	s := open(t, Config{Dir: dir})
	change(t, s, Change{Path: path}, "precious")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{indexName, copyName} {
		if err := os.Truncate(filepath.Join(dir, sectionName("p"), name), 100); err != nil {
			t.Fatal(err)
		}
	}
	s = open(t, Config{Dir: dir})
	change(t, s, Change{Path: path}, "new")
	if err := s.tidyAll(); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range stored(t, s, asideName) {
		all.WriteString(read(t, filepath.Join(dir, sectionName("p"), asideName, name)))
	}
	if !strings.Contains(all.String(), "precious") {
		t.Errorf("set aside: %q", &all)
	}
	if got := list(t, s, Filter{}); len(got) != 1 {
		t.Errorf("%+v", got)
	}
}
