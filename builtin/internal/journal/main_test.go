package journal

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		child(dir)
		return
	}
	flag.Parse()
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		_ = checks.Value.Set("25") // of its 100: each check is some hundred files
	}
	os.Exit(m.Run())
}

// fataler is what *testing.T and *rapid.T share.
type fataler interface {
	Helper()
	Fatalf(string, ...any)
	Errorf(string, ...any)
}

func open(t testing.TB, cfg Config) *Journal {
	t.Helper()
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// die ends a Store as a kill does: its lock is free, and nothing is cleared up.
func die(t testing.TB, s *Journal) {
	t.Helper()
	s.owner.close()
	s.still()
	if err := s.owner.mark.Close(); err != nil {
		t.Fatal(err)
	}
}

// endOf ends an entry whose change was made.
func endOf(e *Entry) error { return e.End() }

// absent stands for a file that does not exist.
const absent = "\x00absent"

// read returns what a file holds, or absent.
func read(t fataler, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return absent
	}
	if err != nil {
		t.Fatalf("%v", err)
	}
	return string(raw)
}

// put gives a file a content, absent removes it.
func put(t fataler, path, content string) {
	t.Helper()
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) { // ext4 flushes a file that is truncated, not a new one
		t.Fatalf("%v", err)
	}
	if content == absent {
		return
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatalf("%v", err)
	}
}

// entry sections a change from what the file holds to a content.
func entry(t fataler, s *Journal, c Change, content string) *Entry {
	t.Helper()
	if c.Principal == "" {
		c.Principal = "p"
	}
	var before []byte
	if now := read(t, c.Path); now != absent {
		before = []byte(now)
	}
	c.Deleted = content == absent
	e, err := s.Begin(c, before, []byte(content))
	if err != nil {
		t.Fatalf("Begin: %v", err)
	}
	return e
}

// change sections a change, makes it, and returns its ID.
func change(t fataler, s *Journal, c Change, content string) string {
	t.Helper()
	e := entry(t, s, c, content)
	put(t, c.Path, content)
	if err := e.End(); err != nil {
		t.Fatalf("Done: %v", err)
	}
	return e.ID
}

// undo plans an undo and makes it as a caller does. It returns the plan and the IDs of the changes that it made.
func undo(t fataler, s *Journal, sel Selection) (*Undo, []string) {
	t.Helper()
	u, err := s.PlanUndo(sel)
	if err != nil {
		t.Fatalf("PlanUndo(%+v): %v", sel, err)
	}
	var ids []string
	for _, f := range u.Files {
		now, err := NodeAt(f.Path)
		if err != nil || !now.same(f.Expect) {
			t.Fatalf("%s holds %v, %v, the plan expects %v", f.Path, now, err, f.Expect)
		}
		content := absent
		if !f.Restore.IsZero() {
			raw, err := s.Content(f.Principal, f.Restore.Blob)
			if err != nil {
				t.Fatalf("Content: %v", err)
			}
			content = string(raw)
		}
		ids = append(ids, change(t, s, Change{Principal: f.Principal, Tool: "undo", Scope: "undo", Path: f.Path, UndoOf: f.Changes}, content))
	}
	return u, ids
}

func list(t fataler, s *Journal, f Filter) []Change {
	t.Helper()
	if f.Principal == "" {
		f.Principal = AllPrincipals
	}
	changes, err := s.List(f)
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	return changes
}

func ids(changes []Change) []string {
	var all []string
	for _, c := range changes {
		all = append(all, c.ID)
	}
	return all
}

// stored returns the names in a directory of the principal "p".
func stored(t fataler, s *Journal, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.cfg.Dir, sectionName("p"), dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%v", err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	return names
}
