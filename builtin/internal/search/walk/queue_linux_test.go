package walk

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/integration/testenv"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestDrain: every change is in the queue when its call has returned.
func TestDrain(t *testing.T) {
	testenv.NeedsNotifications(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	q, err := OpenQueue()
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	d, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	w, err := q.Add(int(d.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, tt := range []struct {
		name string
		do   func() error
		want string
	}{
		{"truncate", func() error { return os.Truncate(path("f"), 3) }, "1 f false"},
		{"chmod", func() error { return os.Chmod(path("f"), 0o600) }, "1 f false"},
		{"link", func() error { return os.Link(path("f"), path("g")) }, "2 g false"},
		{"mkdir", func() error { return os.Mkdir(path("d"), 0o755) }, "2 d true"},
		{"chmod of a directory", func() error { return os.Chmod(path("d"), 0o700) }, "1 d true"},
		{"rename over", func() error { return os.Rename(path("g"), path("f")) }, ""}, // two names of one file: nothing happens
		{"rename", func() error { return os.Rename(path("f"), path("h")) }, "2 f false,2 h false"},
		{"remove", func() error { return os.Remove(path("h")) }, "2 h false"},
	} {
		if err := tt.do(); err != nil {
			t.Fatal(err)
		}
		var got []string
		if err := q.Drain(func(e Event) {
			if e.Watch != w {
				t.Errorf("%s: watch %d, want %d", tt.name, e.Watch, w)
			}
			got = append(got, fmt.Sprint(e.Kind, " ", e.Entry, " ", e.Dir))
		}); err != nil {
			t.Fatal(err)
		}
		if s := strings.Join(slices.Compact(got), ","); s != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, s, tt.want)
		}
	}
}

func TestWaitEndsWithClose(t *testing.T) {
	testenv.NeedsNotifications(t)
	q, err := OpenQueue()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		q.Wait(func() {})
	}()
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	<-done
	if err := q.Drain(func(Event) {}); err == nil {
		t.Error("drained a closed queue")
	}
}

// TestCloseWhileDraining closes a queue while an event is dealt with by ending its
// watch.
func TestCloseWhileDraining(t *testing.T) {
	testenv.NeedsNotifications(t)
	q, err := OpenQueue()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	d, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := q.Add(int(d.Fd())); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	once := sync.OnceFunc(func() {
		go func() { closed <- q.Close() }()
		for q.mu.TryRLock() { // until Close waits for the lock or has had it
			done := q.closed
			q.mu.RUnlock()
			if done {
				break
			}
			runtime.Gosched()
		}
	})
	_ = q.Drain(func(e Event) {
		once()
		q.Remove(e.Watch)
	})
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

func TestRelated(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{{"/", "/x", true}, {"/x", "/x/y", true}, {"/x/y/z", "/x/y", true}, {"/xy", "/x", false}, {octal(`/a\040b`),
		"/a b/c", true}} {
		if got := related(tt.a, tt.b); got != tt.want {
			t.Errorf("related(%q, %q) = %v", tt.a, tt.b, got)
		}
	}
}

// TestMountsQuiet: without a change of mounts nothing is reported.
func TestMountsQuiet(t *testing.T) {
	m, err := OpenMounts(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for range 3 {
		if m.Changed() {
			t.Error("changed")
		}
	}
}

// TestMounts mounts something, where that is allowed.
func TestMounts(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	if err := unix.Mount("none", other, "tmpfs", 0, ""); err != nil {
		t.Skip("mounting is not allowed here: ", err)
	}
	defer func() { _ = unix.Unmount(other, unix.MNT_DETACH) }()
	m, err := OpenMounts(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	o, err := OpenMounts(other)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if err := unix.Unmount(other, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	if m.Changed() || !o.Changed() || o.Changed() {
		t.Error("a change was told of to the wrong one, or not once")
	}
}

func BenchmarkDrainNothing(b *testing.B) {
	q, err := OpenQueue()
	if err != nil {
		b.Fatal(err)
	}
	defer q.Close()
	for b.Loop() {
		if err := q.Drain(func(Event) { b.Fatal("an event") }); err != nil {
			b.Fatal(err)
		}
	}
}
