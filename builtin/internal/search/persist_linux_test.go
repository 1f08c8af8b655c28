package search

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/builtin/internal/search/index"
	"github.com/toolhost/toolhost/builtin/internal/search/walk"
	"github.com/toolhost/toolhost/integration/samples"
)

// settled waits until a file that was just changed can be told from one that is
// changed again: then it is worth writing down.
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

// host is an engine as one process has it, with all that it keeps of a root.
func host(tb testing.TB, dir string, s Scope) *Engine {
	tb.Helper()
	e := New(Config{GlobalIgnore: os.DevNull, Dir: dir})
	settle(tb, e, s.Path)
	return e
}

func closeHost(tb testing.TB, e *Engine) {
	tb.Helper()
	if err := e.Close(); err != nil {
		tb.Error(err)
	}
}

// TestPersisted: what one process has indexed the next one need not read.
func TestPersisted(t *testing.T) {
	files := map[string]string{"bin": "\x00" + strings.Repeat("x", 300_000), "empty": "", "d/e/Kelvin.txt": "\u212a and needle\n", "nul.txt": "a\x00needle\n"}
	for i := range 50 {
		files[fmt.Sprintf("d%d/f%d.txt", i%5, i)] = fmt.Sprintf("needle %d\n", i)
	}
	root, dir := writeTree(t, files), filepath.Join(t.TempDir(), "index")
	scope := Scope{Base: root, Path: root}
	q := GrepQuery{Scope: scope, Pattern: "(?i)K.*needle|needle 7$", Mode: Count}
	settled(t, root)
	e := host(t, dir, scope)
	want, err := e.Grep(context.Background(), q)
	if err != nil || want.Files != 2 {
		t.Fatalf("%+v, %v", want, err)
	}
	settle(t, e, root)
	before := e.Stats(root)
	closeHost(t, e)
	for range 2 {
		e = host(t, dir, scope)
		s := e.Stats(root)
		if s.Index == 0 || s.Index > before.Index || s.Indexed != before.Indexed || s.Persisted == 0 || s.Unsaved != nil {
			t.Errorf("loaded %+v, had %+v", s, before)
		}
		got, err := e.Grep(context.Background(), q)
		if err != nil || cmp.Diff(want, got) != "" {
			t.Errorf("%v\n%s", err, cmp.Diff(want, got))
		}
		settle(t, e, root)
		k := e.cache.get(root).tree
		k.mu.Lock()
		if k.contents.adds != 53 || k.contents.lastSave.adds != 53 { // all but the binary one
			t.Errorf("%d files were indexed, %d of them before", k.contents.adds, k.contents.lastSave.adds)
		}
		k.mu.Unlock()
		closeHost(t, e)
	}
	cold := New(Config{GlobalIgnore: os.DevNull, Dir: dir})
	cold.Warm(root)
	got, err := cold.Grep(context.Background(), q) // waits for the index
	if s := cold.Stats(root); err != nil || cmp.Diff(want, got) != "" || s.Index == 0 {
		t.Errorf("%+v, %v\n%s", s, err, cmp.Diff(want, got))
	}
	cold.Warm(filepath.Dir(root))
	if s := cold.Stats(filepath.Dir(root)); s.State != Walking {
		t.Errorf("a root of which nothing is known: %+v", s)
	}
	closeHost(t, cold)
	other := New(Config{GlobalIgnore: os.DevNull, Dir: dir, MaxFile: 1000})
	settle(t, other, root)
	if s := other.Stats(root); s.Index != 0 {
		t.Errorf("with another limit: %+v", s)
	}
	closeHost(t, other)
}

// TestHiddenNotSaved: nothing of a file is on disk that whoever searched last must
// not see.
func TestHiddenNotSaved(t *testing.T) {
	root := writeTree(t, map[string]string{"open.txt": "apple\n", "shut.txt": "quince\n", "dir/shut/in.txt": "medlar\n"})
	dir := filepath.Join(t.TempDir(), "index")
	all := Scope{Base: root, Path: root}
	some := all
	some.HiddenTag = "shut"
	some.Hidden = func(real string, _ bool) bool { return strings.HasPrefix(filepath.Base(real), "shut") }
	settled(t, root)
	e := host(t, dir, all)
	for _, s := range []Scope{all, some} {
		if _, err := e.Grep(context.Background(), GrepQuery{Scope: s, Pattern: "x"}); err != nil {
			t.Fatal(err)
		}
		settle(t, e, root)
	}
	closeHost(t, e)
	f, err := index.OpenDir(dir, 1<<30, 1).Load(root, diskFormat, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	table, err := f.Section(0)
	if err != nil {
		t.Fatal(err)
	}
	o, dirs, err := decodeRecords(table)
	if err != nil {
		t.Fatal(err)
	}
	for rel, blob := range dirs {
		for _, r := range decodeDirRec(blob, o.ids).rows {
			if rel+r.name != "open.txt" {
				t.Errorf("%s%s was saved", rel, r.name)
			}
		}
	}
	segments, err := new(savedIndex).load(f)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{"apple": 1, "quince": 0, "medlar": 0} {
		var q index.Query
		var found index.Set
		q.Require([]string{text})
		for _, s := range segments {
			if q.Select(s, &found); s.Broken() {
				t.Error("the index cannot be read")
			}
		}
		if found.Len() != want {
			t.Errorf("%s is on disk %d times, want %d", text, found.Len(), want)
		}
	}
}

// TestEditedMeanwhile changes files while no engine runs, also so that size and
// time look as before, and demands ripgrep's answers of the next one.
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
	root, dir := writeTree(t, files), filepath.Join(t.TempDir(), "index")
	scope := Scope{Base: root, Path: root}
	rounds := samples.Rounds(12)
	for range rounds {
		if r.IntN(3) > 0 { // else as fast as it goes
			settled(t, root)
		}
		e := host(t, dir, scope)
		for range 4 {
			pattern := words[r.IntN(len(words))] + fmt.Sprint(r.IntN(10)) + "\n" + words[r.IntN(len(words))]
			compareGrep(t, engines{"persisted": e}, rg, root, GrepQuery{Pattern: strings.ReplaceAll(pattern, "\n", "|"), Mode: Count})
			compareGrep(t, engines{"persisted": e}, rg, root, GrepQuery{Pattern: pattern, Mode: Content, Multiline: true})
		}
		settle(t, e, root)
		if r.IntN(4) == 0 {
			k := e.cache.get(root).tree
			k.mu.Lock()
			k.contents.lastSave = lastSave{} // so that it is saved again
			k.mu.Unlock()
		}
		closeHost(t, e)
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

// TestBrokenIndex: whatever the file holds, answers are right, and it is replaced.
func TestBrokenIndex(t *testing.T) {
	root := writeTree(t, map[string]string{"a.txt": "needle\n", "b.txt": "hay\n"})
	dir := filepath.Join(t.TempDir(), "index")
	scope := Scope{Base: root, Path: root}
	settled(t, root)
	ask := func() {
		t.Helper()
		e := host(t, dir, scope)
		r, err := e.Grep(context.Background(), GrepQuery{Scope: scope, Pattern: "needle", Mode: Count})
		if err != nil || r.Text != "a.txt:1\n" {
			t.Errorf("%+v, %v", r, err)
		}
		settle(t, e, root)
		closeHost(t, e)
	}
	ask()
	names, err := filepath.Glob(filepath.Join(dir, "*.idx"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	whole, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	contents := []string{"", "toolhost", string(whole[:len(whole)/2]), string(whole) + "x", strings.Repeat("\xff", len(whole))}
	for i := len(whole) - 1; i >= 0; i -= len(whole)/12 + 1 { // also in what is looked at only when a query asks for it
		torn := bytes.Clone(whole)
		torn[i]++
		contents = append(contents, string(torn))
	}
	for _, content := range contents {
		if err := os.WriteFile(names[0], []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		ask()
		if e := host(t, dir, scope); e.Stats(root).Index == 0 {
			t.Error("it was not replaced")
			closeHost(t, e)
		} else {
			closeHost(t, e)
		}
	}
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

func FuzzTable(f *testing.F) {
	k := fileState{stamp: walk.Stamp{Size: 3, Change: 4, Status: 5, Inode: 6, Links: 1}, at: 7, content: contentText, indexed: true}
	f.Add(encodeRecords(header{maxFile: 1, ids: 5}, []dirRec{{rel: ""}, {rel: "d/", look: walk.Look{Stamp: k.stamp, At: 8}, rows: []fileRec{
		{"a", walk.File, k, 1}, {"b", walk.File, fileState{content: contentBinary}, 0}, {"c", walk.Dir, fileState{}, 0},
	}}}))
	f.Add(encodeRecords(header{}, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, dirs, err := decodeRecords(b)
		if err != nil {
			return
		}
		var all []dirRec
		for _, rel := range slices.Sorted(maps.Keys(dirs)) {
			f := decodeDirRec(dirs[rel], o.ids)
			if f == nil {
				f = new(dirRec)
			}
			f.rel = rel
			all = append(all, *f)
		}
		again, more, err := decodeRecords(encodeRecords(o, all))
		if err != nil || again != o || len(more) != len(dirs) {
			t.Errorf("%v, %v: %v", o, again, err)
		}
		for _, f := range all {
			if got := decodeDirRec(more[f.rel], o.ids); got == nil || got.look != f.look || !slices.Equal(rowNames(got.rows), rowNames(f.rows)) {
				t.Errorf("%q: %v, want %v", f.rel, got, f)
			}
		}
	})
}

func rowNames(rows []fileRec) (names []string) {
	for _, r := range rows {
		names = append(names, r.name)
	}
	return names
}

// decodeDirRec reads one directory of a table; nil if it is none.
func decodeDirRec(b []byte, ids uint32) *dirRec {
	f := new(dirRec)
	if !f.decode(b, ids) {
		return nil
	}
	return f
}
