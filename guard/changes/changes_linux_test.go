package changes

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/samples"
	"github.com/toolhost/toolhost/integration/testenv"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open returns a feed that the test closes.
func open(t testing.TB, most int) *Feed {
	t.Helper()
	testenv.NeedsNotifications(t)
	f, err := Open(most)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// watch has a feed watch a directory under a name.
func watch(t testing.TB, f *Feed, name, path string) *Dir {
	t.Helper()
	d := new(Dir)
	if !f.WatchPath(d, name, path) {
		t.Fatalf("%s is not watched", path)
	}
	return d
}

// read returns what a feed yields.
func read(f *Feed) string {
	var all []string
	if f.Read(func(owner any, e Event) { all = append(all, fmt.Sprint(owner, " ", e.Kind, " ", e.Entry, " ", e.Dir)) }) {
		all = append(all, "lost")
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}

// watches counts the watches of the process.
func watches(f *Feed) int {
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	return len(f.hub.watches)
}

// TestRead: every change is yielded when its call has returned.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.WriteFile(path("f"), nil, 0o644))
	f := open(t, 9)
	d := new(Dir)
	opened, err := os.Open(dir)
	must(t, err)
	if !f.Watch(d, "dir", int(opened.Fd())) {
		t.Fatal("not watched")
	}
	must(t, opened.Close())
	for _, tt := range []struct {
		name string
		do   func() error
		want string
	}{
		{"truncate", func() error { return os.Truncate(path("f"), 3) }, "dir 0 f false"},
		{"chmod", func() error { return os.Chmod(path("f"), 0o600) }, "dir 0 f false"},
		{"link", func() error { return os.Link(path("f"), path("g")) }, "dir 1 g false"},
		{"mkdir", func() error { return os.Mkdir(path("d"), 0o755) }, "dir 1 d true"},
		{"chmod of a directory", func() error { return os.Chmod(path("d"), 0o700) }, "dir 0 d true"},
		{"rename over", func() error { return os.Rename(path("g"), path("f")) }, ""}, // two names of one file: nothing happens
		{"rename", func() error { return os.Rename(path("f"), path("h")) }, "dir 1 f false,dir 1 h false"},
		{"remove", func() error { return os.Remove(path("h")) }, "dir 1 h false"},
		{"chmod of the watched", func() error { return os.Chmod(dir, 0o700) }, "dir 0  true"},
		{"rename of the watched", func() error { return os.Rename(dir, dir+"2") }, "dir 2  false"},
		{"remove all", func() error { return os.RemoveAll(dir + "2") }, "dir 1 d true,dir 1 g false,dir 2  false"},
	} {
		must(t, tt.do())
		got := read(f)
		if got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
	if d.Watch() != 0 || f.Watching() != 0 || watches(f) != 0 {
		t.Errorf("%d of %d watches are left of a directory that is gone", f.Watching(), watches(f))
	}
}

// TestShared: a directory has one watch for all feeds and paths, which ends with the last.
func TestShared(t *testing.T) {
	dir := t.TempDir()
	a, b := open(t, 9), open(t, 9)
	one, two, three := watch(t, a, "one", dir), watch(t, a, "two", dir+"/."), watch(t, b, "three", dir)
	if a.hub != b.hub || watches(a) != 1 {
		t.Fatalf("there are %d watches", watches(a))
	}
	step := func(wantA, wantB string) {
		t.Helper()
		must(t, os.WriteFile(filepath.Join(dir, "f"), nil, 0o644))
		must(t, os.Remove(filepath.Join(dir, "f")))
		if gotA, gotB := read(a), read(b); gotA != wantA || gotB != wantB {
			t.Errorf("got %q and %q, want %q and %q", gotA, gotB, wantA, wantB)
		}
	}
	step("one 1 f false,two 1 f false", "three 1 f false")
	a.Unwatch(one)
	step("two 1 f false", "three 1 f false")
	must(t, b.Close())
	if three.Watch() != 0 || b.Watch(three, "three", 0) {
		t.Error("a closed feed watches")
	}
	step("two 1 f false", "")
	a.Unwatch(two)
	if watches(a) != 0 {
		t.Error("the watch has not ended")
	}
	step("", "")
}

// TestReplaced: a directory that was made again in place of another one is watched.
func TestReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	f := open(t, 9)
	must(t, os.Mkdir(dir, 0o755))
	d := watch(t, f, "d", dir)
	must(t, os.Rename(dir, dir+"2")) // the watch moves along
	must(t, os.Mkdir(dir, 0o755))
	if before := d.Watch(); !f.WatchPath(d, "d", dir) || d.Watch() == before || watches(f) != 1 {
		t.Errorf("watch %d, %d before, of %d", d.Watch(), before, watches(f))
	}
	read(f)
	must(t, os.WriteFile(filepath.Join(dir+"2", "old"), nil, 0o644))
	must(t, os.Mkdir(filepath.Join(dir, "new"), 0o755))
	if got := read(f); got != "d 1 new true" {
		t.Errorf("got %q", got)
	}
}

// TestBindMount mounts a directory at a second path, where that is allowed.
func TestBindMount(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	if err := unix.Mount(dir, other, "", unix.MS_BIND, ""); err != nil {
		t.Skip("mounting is not allowed here: ", err)
	}
	defer func() { _ = unix.Unmount(other, unix.MNT_DETACH) }()
	f := open(t, 9)
	watch(t, f, "dir", dir)
	watch(t, f, "other", other)
	must(t, os.Mkdir(filepath.Join(other, "x"), 0o755))
	if got := read(f); got != "dir 1 x true,other 1 x true" {
		t.Errorf("got %q", got)
	}
}

// TestLost: each feed learns once that events were lost, by the kernel or by itself.
func TestLost(t *testing.T) {
	dir := t.TempDir()
	a, b := open(t, 9), open(t, 9)
	watch(t, a, "a", dir)
	watch(t, b, "b", dir)
	limit, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	must(t, err)
	most := 0
	if _, err := fmt.Sscan(string(limit), &most); err != nil || most > 100_000 {
		t.Skipf("a queue of %s events", limit)
	}
	a.hub.mu.Lock() // nothing empties the queue
	for i := range most + 2 {
		must(t, os.Chmod(dir, 0o700+os.FileMode(i%2)))
		_ = os.Truncate(filepath.Join(dir, "none"), 0)
		if i%2 == 0 { // so that no two events in a row are equal
			must(t, os.WriteFile(filepath.Join(dir, "f"), nil, 0o644))
		}
	}
	a.hub.mu.Unlock()
	if gotA, gotB := read(a), read(b); !strings.HasSuffix(gotA, "lost") || !strings.HasSuffix(gotB, "lost") {
		t.Errorf("got %q and %q", gotA, gotB)
	}
	must(t, os.Remove(filepath.Join(dir, "f")))
	b.Lose()
	if gotA, gotB := read(a), read(b); gotA != "a 1 f false" || gotB != "lost" {
		t.Errorf("got %q and %q", gotA, gotB)
	}
	a.hub.mu.Lock()
	for i := range maxNames + 1 {
		a.hub.take(a.watchOf(), Event{Entry: fmt.Sprint(i)}, false)
	}
	a.hub.mu.Unlock()
	if got := read(a); got != "lost" {
		t.Errorf("got %.100q", got)
	}
}

// watchOf returns a watch.
func (f *Feed) watchOf() int32 {
	for id := range f.hub.watches {
		return id
	}
	return 0
}

// TestMost: neither a feed nor the process has more watches than it may.
func TestMost(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()}
	a, b := open(t, 2), open(t, 9)
	a.hub.most = 3
	got := ""
	for _, dir := range dirs {
		got += fmt.Sprint(a.WatchPath(new(Dir), dir, dir), " ", b.WatchPath(new(Dir), dir, dir), ",")
	}
	if want := "true true,true true,false true,false false,"; got != want || watches(a) != 3 {
		t.Errorf("got %s with %d watches, want %s", got, watches(a), want)
	}
}

// TestCloseWhileReading closes feeds while others read and events arrive.
func TestCloseWhileReading(t *testing.T) {
	dir := t.TempDir()
	for range samples.Raced(50) {
		a, b := open(t, 9), open(t, 9)
		watch(t, a, "a", dir)
		watch(t, b, "b", dir)
		done := make(chan error)
		go func() { done <- a.Close() }()
		must(t, os.WriteFile(filepath.Join(dir, "f"), nil, 0o644))
		if got := read(b); !strings.Contains(got, "f") {
			t.Errorf("got %q", got)
		}
		read(a)
		must(t, b.Close())
		must(t, <-done)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func BenchmarkReadNothing(b *testing.B) {
	f := open(b, 9)
	watch(b, f, "dir", b.TempDir())
	for b.Loop() {
		f.Read(func(any, Event) { b.Fatal("an event") })
	}
}

// TestWatchFile: the names of a file are counted in its metadata, and the watch ends with the file.
func TestWatchFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	write := func() {
		t.Helper()
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write()
	f, d := open(t, 10), new(Dir)
	if !f.WatchFile(d, "f", path) {
		t.Fatal("the file is not watched")
	}
	write()
	if got := read(f); got != "" {
		t.Errorf("a write: %q", got)
	}
	if err := os.Link(path, filepath.Join(dir, "other")); err != nil {
		t.Fatal(err)
	}
	if got := read(f); got != "f 0  false" {
		t.Errorf("a new name: %q", got)
	}
	for _, name := range []string{"f", "other"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(f); got != "f 2  false" || d.Watch() != 0 {
		t.Errorf("the end: %q, watch %d", got, d.Watch())
	}
}
