package search

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/builtin/internal/search/walk"
	"github.com/toolhost/toolhost/integration/samples"
	"github.com/toolhost/toolhost/integration/testenv"
)

// settled waits until a file that was just changed can be told from one that is
// changed again.
func settled(tb testing.TB, root string) {
	tb.Helper()
	r, err := walk.OpenRoot(root)
	if err != nil {
		tb.Fatal(err)
	}
	defer r.Close()
	name := filepath.Join(tb.TempDir(), "now")
	for began := time.Now(); time.Since(began) < 2*racyWindow; { // by the clock of the file system
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			tb.Fatal(err)
		}
	}
}

func closeEngine(tb testing.TB, e *Engine) {
	tb.Helper()
	if err := e.Close(); err != nil {
		tb.Error(err)
	}
}

// anew is what an engine that keeps nothing answers.
func anew(tb testing.TB, q GrepQuery) *GrepResult {
	tb.Helper()
	e := New(Config{GlobalIgnore: os.DevNull, MaxKept: -1})
	defer closeEngine(tb, e)
	return mustAnswer(tb, e, q)
}

func mustAnswer(tb testing.TB, e *Engine, q GrepQuery) *GrepResult {
	tb.Helper()
	r, err := e.Grep(context.Background(), q)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// many is a tree of 100 directories, two below each other, with three needles in each.
func many() map[string]string {
	files := map[string]string{".ignore": "ignored\n"}
	for d := range 50 {
		for i := range 3 {
			files[fmt.Sprintf("d%02d/f%d.txt", d, i)] = "needle\n"
			files[fmt.Sprintf("d%02d/sub/f%d.txt", d, i)] = "needle\n"
		}
		files[fmt.Sprintf("d%02d/ignored", d)] = "needle\n"
	}
	return files
}

// TestPageAhead: a page needs only what comes before its end, and that as it is.
func TestPageAhead(t *testing.T) {
	root := writeTree(t, many())
	write := func(name, text string) func() error {
		return func() error { return os.WriteFile(filepath.Join(root, name), []byte(text), 0o644) }
	}
	page := GrepQuery{Scope: Scope{Base: root, Path: root}, Pattern: "needle", Mode: Content, Limit: 20}
	e := keeping(t, Config{}, page.Scope)
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"as it was indexed", func() error { return nil }},
		{"changed before the end", write("d00/f0.txt", "another needle\nneedle\n")},
		{"changed after the end", write("d48/f0.txt", "another needle\n")},
		{"deleted before the end", func() error { return os.Remove(filepath.Join(root, "d01/f2.txt")) }},
		{"created before the end", write("d01/a.txt", "a needle\n")},
		{"created after the end", write("d49/a.txt", "a needle\n")},
		{"a directory moved to the front", func() error { return os.Rename(filepath.Join(root, "d47"), filepath.Join(root, "c47")) }},
		{"a directory moved after the end", func() error { return os.Rename(filepath.Join(root, "d00"), filepath.Join(root, "e00")) }},
		{"other rules", write("d02/.ignore", "f0.txt\n")},
		{"a link to a file after the end, changed by it", func() error {
			name := filepath.Join(root, "d02", "link.txt")
			if err := os.Link(filepath.Join(root, "d46/f0.txt"), name); err != nil {
				return err
			}
			return os.WriteFile(name, []byte("no more\n"), 0o644)
		}},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got, want := mustAnswer(t, e, page), anew(t, page); cmp.Diff(want, got) != "" {
				t.Errorf("%s:\n%s", step.name, cmp.Diff(want, got))
			}
		}
	}
	for offset := 20; offset < 320; offset += 20 {
		page.Offset = offset
		if got, want := mustAnswer(t, e, page), anew(t, page); cmp.Diff(want, got) != "" {
			t.Errorf("from %d on:\n%s", offset, cmp.Diff(want, got))
		}
	}
	for _, q := range []GrepQuery{
		{Pattern: "needle", Mode: Count, Limit: 300}, {Pattern: "nothing", Mode: Content, Limit: 5}, {Pattern: "needle"},
		{Pattern: "another", Mode: Content, Limit: 2, Globs: []string{"d4*"}}, {Pattern: "needle", Mode: Count, Limit: 1, NoIgnore: true},
	} {
		q.Scope = page.Scope
		if got, want := mustAnswer(t, e, q), anew(t, q); cmp.Diff(want, got) != "" {
			t.Errorf("%+v:\n%s", q, cmp.Diff(want, got))
		}
	}
}

// TestPageAheadMeanwhile changes a tree between two parts of a listing, and lets another
// search find that out first.
func TestPageAheadMeanwhile(t *testing.T) {
	testenv.NotShort(t, "makes seven trees")
	root := writeTree(t, many())
	scope := Scope{Base: root, Path: root}
	all := GrepQuery{Scope: scope, Pattern: "needle", Mode: Count}
	for name, do := range map[string]func() error{
		"after the page":     func() error { return os.WriteFile(filepath.Join(root, "d49/f0.txt"), []byte("none\n"), 0o644) },
		"before the part":    func() error { return os.WriteFile(filepath.Join(root, "d00/f0.txt"), []byte("none\n"), 0o644) },
		"a directory gone":   func() error { return os.RemoveAll(filepath.Join(root, "d10")) },
		"a directory moved":  func() error { return os.Rename(filepath.Join(root, "d20"), filepath.Join(root, "a20")) },
		"a directory anew":   func() error { return os.MkdirAll(filepath.Join(root, "d20/sub"), 0o755) },
		"a rule for it":      func() error { return os.WriteFile(filepath.Join(root, ".ignore"), []byte("d3*\n"), 0o644) },
		"the root's own end": func() error { return os.Chmod(root, 0o700) },
	} {
		e := keeping(t, Config{}, scope)
		var once sync.Once
		q := all
		q.Limit = 260
		q.Asked = func(string) bool {
			once.Do(func() {
				if err := do(); err != nil {
					t.Error(err)
				}
				if got, want := mustAnswer(t, e, all), anew(t, all); cmp.Diff(want, got) != "" {
					t.Errorf("%s, meanwhile:\n%s", name, cmp.Diff(want, got))
				}
			})
			return false
		}
		mustAnswer(t, e, q) // of what has changed since it was asked it may show one or the other
		q.Asked = nil
		if got, want := mustAnswer(t, e, q), anew(t, q); cmp.Diff(want, got) != "" {
			t.Errorf("%s:\n%s", name, cmp.Diff(want, got))
		}
	}
}

// TestEditedMeanwhile changes files between queries, also so that size and time look as
// before, and demands ripgrep's answers.
func TestEditedMeanwhile(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	rg := ripgrep(t)
	words := []string{"alpha", "bravo", "delta", "gamma", "kappa", "omega"}
	text := func(r *rand.Rand) string {
		var b strings.Builder
		for range 40 { // all of one length
			b.WriteString(words[r.IntN(len(words))] + fmt.Sprint(r.IntN(10)) + "\n")
		}
		return b.String()
	}
	r := rand.New(rand.NewPCG(5, 6))
	files := map[string]string{}
	for i := range 120 {
		files[fmt.Sprintf("d%d/e%d/f%d.txt", i%4, i%3, i)] = text(r)
	}
	root := writeTree(t, files)
	scope := Scope{Base: root, Path: root}
	e := keeping(t, Config{}, scope)
	rounds := samples.Rounds(12)
	for range rounds {
		if r.IntN(3) > 0 { // else as fast as it goes
			settled(t, root)
		}
		for range 4 {
			pattern := words[r.IntN(len(words))] + fmt.Sprint(r.IntN(10)) + "\n" + words[r.IntN(len(words))]
			compareGrep(t, engines{"keeping": e}, rg, root,
				GrepQuery{Pattern: strings.ReplaceAll(pattern, "\n", "|"), Mode: Count})
			compareGrep(t, engines{"keeping": e}, rg, root, GrepQuery{Pattern: pattern, Mode: Content, Multiline: true})
		}
		settle(t, e, root)
		for range 1 + r.IntN(6) {
			editUnseen(t, root, text(r), r)
		}
	}
}

// editUnseen changes a file so that as little as possible shows.
func editUnseen(t *testing.T, root, text string, r *rand.Rand) {
	t.Helper()
	pick := func() string {
		all, err := filepath.Glob(filepath.Join(root, "d*/e*/f*.txt*"))
		if err != nil || len(all) == 0 {
			t.Fatal(all, err)
		}
		return all[r.IntN(len(all))]
	}
	try := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	name := pick()
	info, err := os.Stat(name)
	try(err)
	dir := filepath.Dir(name)
	was, err := os.Stat(dir)
	try(err)
	switch r.IntN(8) {
	case 0, 1: // in place, with the time set back
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		try(err)
		_, err = f.WriteAt([]byte(text), 0)
		try(err)
		try(f.Close())
	case 2: // by a rename
		try(os.WriteFile(name+"~", []byte(text), 0o644))
		try(os.Rename(name+"~", name))
	case 3: // two files change places
		other := pick()
		try(os.Rename(name, name+"~"))
		if other != name {
			try(os.Rename(other, name))
		}
		try(os.Rename(name+"~", other))
	case 4: // two directories change places
		a, b := filepath.Join(root, fmt.Sprintf("d%d", r.IntN(4))), filepath.Join(root, fmt.Sprintf("d%d", r.IntN(4)))
		if a != b {
			try(os.Rename(a, a+"~"))
			try(os.Rename(b, a))
			try(os.Rename(a+"~", b))
		}
		return
	case 5: // one goes, and another comes, which is as good for the next edit: with many samples there would soon be none
		try(os.Rename(name, name+"~"))
	case 6: // one comes, as a file or in a directory
		try(os.MkdirAll(filepath.Join(dir, "new"), 0o755))
		try(os.WriteFile(filepath.Join(dir, "new", fmt.Sprint(r.IntN(5))), []byte(text), 0o644))
		try(os.WriteFile(filepath.Join(dir, fmt.Sprint("new", r.IntN(5))), []byte(text), 0o644))
	default: // through another name, which then goes
		try(os.Link(name, filepath.Join(root, "other")))
		try(os.WriteFile(filepath.Join(root, "other"), []byte(text), 0o644))
		try(os.Remove(filepath.Join(root, "other")))
	}
	if _, err := os.Lstat(name); err == nil {
		try(os.Chtimes(name, info.ModTime(), info.ModTime()))
	}
	try(os.Chtimes(dir, was.ModTime(), was.ModTime()))
}

func TestRacy(t *testing.T) {
	const at = int64(1_800_000_000_123_456_789)
	for _, tt := range []struct {
		name           string
		change, status int64 // before at
		want           bool
	}{
		{"long ago", int64(time.Hour), int64(time.Hour), false},
		{"just now", int64(time.Millisecond), int64(time.Hour), true},
		{"time set back just now", int64(time.Hour), int64(time.Millisecond), true},
		{"in the future: a clock was set", -int64(time.Hour), int64(time.Hour), true},
		{"times in whole seconds", 123_456_789 + int64(time.Second), 123_456_789 + int64(time.Second), true},
	} {
		k := fileState{at: at, stamp: walk.Stamp{Change: at - tt.change, Status: at - tt.status}}
		if got := k.racy(); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}
