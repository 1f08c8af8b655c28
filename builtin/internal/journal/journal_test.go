package journal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestChangesAreListed(t *testing.T) {
	s := open(t, Config{Dir: filepath.Join(t.TempDir(), "history")})
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "sub-b")
	change(t, s, Change{Tool: "Write", Scope: "s1", Path: a}, "one\n")
	change(t, s, Change{Tool: "Edit", Scope: "s2", Path: a}, "two\n")
	e := entry(t, s, Change{Tool: "Write", Scope: "s2", Path: b}, "x")
	if err := e.Abort(); err != nil {
		t.Fatal(err)
	}
	change(t, s, Change{Tool: "undo", Scope: "s2", Path: a, UndoOf: []string{"some"}}, absent)
	entry(t, s, Change{Tool: "Write", Scope: "s2", Path: b}, "")
	change(t, s, Change{Principal: "q", Tool: "Write", Scope: "s1", Path: filepath.Join(dir, "c")}, "q's")

	blob := func(s string) Blob { return BlobOf([]byte(s)) }
	want := []Change{
		{Principal: "p", Tool: "Write", Scope: "s2", Path: b, Created: true, After: blob(""), State: Pending},
		{Principal: "p", Tool: "undo", Scope: "s2", Path: a, Deleted: true, Before: blob("two\n"), State: Done, UndoOf: []string{"some"}},
		{Principal: "p", Tool: "Write", Scope: "s2", Path: b, Created: true, After: blob("x"), State: Failed},
		{Principal: "p", Tool: "Edit", Scope: "s2", Path: a, Before: blob("one\n"), After: blob("two\n"), State: Done},
		{Principal: "p", Tool: "Write", Scope: "s1", Path: a, Created: true, After: blob("one\n"), State: Done},
	}
	all := list(t, s, Filter{Principal: "p"})
	if diff := cmp.Diff(want, all, cmpopts.IgnoreFields(Change{}, "ID", "Time")); diff != "" {
		t.Fatalf("(-want +got)\n%s", diff)
	}
	for name, tt := range map[string]struct {
		f    Filter
		want []string
	}{
		"path":      {Filter{Path: a}, []string{all[1].ID, all[3].ID, all[4].ID}},
		"no prefix": {Filter{Path: filepath.Join(dir, "sub")}, nil},
		"directory": {Filter{Principal: "p", Path: dir}, ids(all)},
		"scope":     {Filter{Scope: "s1", Principal: "p"}, []string{all[4].ID}},
		"limit":     {Filter{Principal: "p", Limit: 2}, ids(all[:2])},
		"since":     {Filter{Principal: "p", Since: all[2].Time}, ids(all[:3])},
		"future":    {Filter{Since: time.Now().Add(time.Hour)}, nil},
		"nobody":    {Filter{Principal: "r"}, nil},
	} {
		if diff := cmp.Diff(tt.want, ids(list(t, s, tt.f))); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
	if n := len(list(t, s, Filter{})); n != 6 {
		t.Errorf("everyone: %d changes, want 6", n)
	}
	if _, err := s.List(Filter{}); err == nil {
		t.Error("List without a principal: no error")
	}
}

func TestShow(t *testing.T) {
	s := open(t, Config{Dir: filepath.Join(t.TempDir(), "history"), MaxFile: 100})
	path := filepath.Join(t.TempDir(), "f")
	for _, tt := range []struct{ name, content, want string }{
		{"created", "a\nb\n", "+a\n+b\n"},
		{"edited", "a\nc\n", "-b\n+c\n"},
		{"encoding", "\uFEFFa\nc\n", "only the encoding"},
		{"too large", strings.Repeat("x\n", 51), "not kept"},
		{"deleted", absent, "not kept"},
		{"binary", "\x00\x01\x02\xff", "binary content"},
		{"empty", "", "binary content"},
		{"nothing", absent, ""},
	} {
		id := change(t, s, Change{Path: path}, tt.content)
		c, diff, err := s.Show("p", id[:8])
		if err != nil || c[0].ID != id || !strings.Contains(diff[0], tt.want) {
			t.Errorf("%s: %+v, %q, %v, want %q in it", tt.name, c, diff, err, tt.want)
		}
	}
	for name, id := range map[string]string{"unknown": "zzzzzzzz", "too short": list(t, s, Filter{})[0].ID[:3],
		"empty": ""} {
		if _, _, err := s.Show("p", id); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: %v, want ErrUnknown", name, err)
		}
	}
	id := list(t, s, Filter{})[0].ID
	if _, _, err := s.Show("q", id); !errors.Is(err, ErrUnknown) {
		t.Errorf("of another principal: %v, want ErrUnknown", err)
	}
}

func TestContentIsOfItsPrincipal(t *testing.T) {
	s := open(t, Config{Dir: filepath.Join(t.TempDir(), "history")})
	change(t, s, Change{Path: filepath.Join(t.TempDir(), "f")}, "secret")
	secret := BlobOf([]byte("secret"))
	for _, who := range []string{"p", AllPrincipals} {
		if got, err := s.Content(who, secret); err != nil || string(got) != "secret" {
			t.Errorf("Content(%q): %q, %v", who, got, err)
		}
	}
	for name, b := range map[string]Blob{"zero": {}, "unknown": BlobOf([]byte("y")),
		"a path": {Sum: "../index", Size: 6}} {
		if got, err := s.Content("p", b); !errors.Is(err, ErrNotKept) {
			t.Errorf("%s: %q, %v, want ErrNotKept", name, got, err)
		}
	}
	if got, err := s.Content("q", secret); !errors.Is(err, ErrNotKept) {
		t.Errorf("for another: %q, %v, want ErrNotKept", got, err)
	}
	if _, err := s.Content("", secret); err == nil {
		t.Error("for nobody: no error")
	}
}

func TestNothingIsJournalledWithoutADirectory(t *testing.T) {
	s := open(t, Config{})
	e, err := s.Begin(Change{}, nil, nil)
	if err != nil || e.ID != "" || e.Undoable() == nil {
		t.Errorf("Begin: %q, %v", e.ID, err)
	}
	if err := errors.Join(e.End(), e.Abort()); err != nil {
		t.Error(err)
	}
	e = nil
	if err := errors.Join(e.End(), e.Abort()); err != nil || e.Undoable() == nil {
		t.Errorf("no entry: %v", err)
	}
	if changes, err := s.List(Filter{Principal: "p"}); len(changes) > 0 || err != nil {
		t.Errorf("List: %v, %v", changes, err)
	}
	if _, err := s.PlanUndo(Selection{Principal: "p", Last: 1}); err == nil {
		t.Error("PlanUndo: no error")
	}
}

func TestLargeFilesAreRecordedByHash(t *testing.T) {
	s := open(t, Config{Dir: filepath.Join(t.TempDir(), "history"), MaxFile: 10})
	path := filepath.Join(t.TempDir(), "f")
	large := "more than ten bytes"
	for _, tt := range []struct {
		content  string
		undoable bool
	}{{large, true}, {"small", false}, {"smaller", true}} {
		e := entry(t, s, Change{Path: path}, tt.content)
		put(t, path, tt.content)
		if err := e.End(); err != nil {
			t.Fatal(err)
		}
		if err := e.Undoable(); (err == nil) != tt.undoable {
			t.Errorf("to %q: Undoable: %v", tt.content, err)
		}
	}
	undo(t, s, Selection{Principal: "p", Last: 1})
	if got := read(t, path); got != "small" {
		t.Errorf("undone: %q", got)
	}
	u, _ := undo(t, s, Selection{Principal: "p", Last: 1, Force: true})
	if len(u.Refused) != 1 || u.Refused[0].Forced || !strings.Contains(u.Refused[0].Why, "not kept") ||
		read(t, path) != "small" {
		t.Errorf("%+v, %q, want it refused", u, read(t, path))
	}
}

func TestEndsCountOnce(t *testing.T) {
	s := open(t, Config{Dir: filepath.Join(t.TempDir(), "history")})
	e := entry(t, s, Change{Path: filepath.Join(t.TempDir(), "f")}, "x")
	if err := errors.Join(e.End(), e.Abort(), e.End()); err != nil {
		t.Fatal(err)
	}
	if c := list(t, s, Filter{})[0]; c.State != Done || len(s.owner.open()) > 0 {
		t.Errorf("%v, want it done", c.State)
	}
}

func TestDirectoryIsOwnerOnly(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs the modes of Unix")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	s := open(t, Config{Dir: dir})
	change(t, s, Change{Path: filepath.Join(t.TempDir(), "f")}, "x")
	if err := s.tidyAll(); err != nil {
		t.Fatal(err)
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
		info, err := d.Info()
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
		return nil
	})
}

func TestCloseWithOpenChanges(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "history")
	s := open(t, Config{Dir: dir})
	path := filepath.Join(t.TempDir(), "f")
	entry(t, s, Change{Path: path}, "x")
	put(t, path, "x")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Begin(Change{Principal: "p", Path: path}, nil, nil); err == nil {
		t.Error("Begin after Close: no error")
	}
	if c := list(t, open(t, Config{Dir: dir}), Filter{})[0]; c.State != Done {
		t.Errorf("after opening again: %v, want it done", c.State)
	}
}

func TestDirectoryRemovedWhileInUse(t *testing.T) {
	s := open(t, Config{Dir: filepath.Join(t.TempDir(), "history")})
	path := filepath.Join(t.TempDir(), "f")
	change(t, s, Change{Path: path}, "a")
	if err := os.RemoveAll(s.cfg.Dir); err != nil {
		t.Fatal(err)
	}
	id := change(t, s, Change{Path: path}, "b")
	if got := ids(list(t, s, Filter{})); len(got) != 1 || got[0] != id {
		t.Errorf("%q, want the one change since", got)
	}
	undo(t, s, Selection{Principal: "p", Last: 1})
	if got := read(t, path); got != "a" {
		t.Errorf("undone: %q", got)
	}
}
