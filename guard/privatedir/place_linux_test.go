package privatedir

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// places returns the place of a caller for a directory of the test.
func places(t *testing.T) (p *Place, host string, s *Store) {
	t.Helper()
	s = Open(filepath.Join(t.TempDir(), "private"))
	t.Cleanup(func() { s.Close() })
	host = filepath.Join(t.TempDir(), "host")
	if err := os.Mkdir(host, 0o755); err != nil {
		t.Fatal(err)
	}
	p = &Place{name: host}
	p.make = func() error {
		dir, err := s.begin()
		p.dir = filepath.Join(dir, "place")
		return err
	}
	return p, host, s
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func bring(t *testing.T, p *Place) (fresh []string) {
	t.Helper()
	fresh, _, err := p.Sync(View{Hidden: func(path string, _ bool) bool { return filepath.Base(path) == "denied" }})
	if err != nil {
		t.Fatal(err)
	}
	return fresh
}

// TestLocate: a name is the caller's own or the host's, the same before and after the entries of the host have mount points.
func TestLocate(t *testing.T) {
	p, host, _ := places(t)
	write(t, filepath.Join(host, "file"))
	write(t, filepath.Join(host, "dir", "deep"))
	write(t, filepath.Join(host, "denied"))
	if err := syscall.Mkfifo(filepath.Join(host, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(host, "sockets"), 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(host, "sockets", "s"))
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	set := Set{p}
	for range 2 {
		for _, tt := range []struct {
			name string
			own  bool
		}{
			{"", true}, {"/file", false}, {"/dir", false}, {"/dir/deep", false}, {"/dir/none", false},
			{"/none", true}, {"/none/deep", true}, {"/pipe", true}, {"/sockets", true}, {"/sockets/s", true}, {"-twin", false},
		} {
			at, own := set.Locate(host + tt.name)
			if own != tt.own || own && at != p.Dir()+tt.name || !own && at != host+tt.name {
				t.Errorf("%q lies at %s, own %v", tt.name, at, own)
			}
			if own && set.Named(at) != host+tt.name {
				t.Errorf("%s is called %q", at, set.Named(at))
			}
		}
		bring(t, p)
	}
	if got := p.Shown(); !slices.Equal(got, []string{"dir", "file"}) {
		t.Errorf("%v are shown", got)
	}
	if name := set.Named(filepath.Join(p.Dir(), "file")); name != "" {
		t.Errorf("a mount point is called %q", name)
	}
}

// TestSync follows what appears, goes and is replaced in the host's directory, and leaves alone what the caller has.
func TestSync(t *testing.T) {
	p, host, _ := places(t)
	write(t, filepath.Join(host, "a"))
	if got := bring(t, p); !slices.Equal(got, []string{"a"}) {
		t.Errorf("%v at first", got)
	}
	write(t, filepath.Join(p.Dir(), "mine"))
	write(t, filepath.Join(host, "mine"))
	write(t, filepath.Join(host, "next"))
	if err := os.Rename(filepath.Join(host, "next"), filepath.Join(host, "a")); err != nil {
		t.Fatal(err)
	}
	if got := bring(t, p); !slices.Equal(got, []string{"a"}) {
		t.Errorf("%v after a was replaced", got)
	}
	if _, own := (Set{p}).Locate(host + "/mine"); !own {
		t.Error("a file of the caller is taken for the host's")
	}
	if err := os.Remove(filepath.Join(host, "a")); err != nil {
		t.Fatal(err)
	}
	bring(t, p)
	if _, err := os.Lstat(filepath.Join(p.Dir(), "a")); err == nil || len(p.Shown()) != 0 {
		t.Errorf("%v are shown of what is gone", p.Shown())
	}
	if err := os.Symlink("/etc", filepath.Join(host, "link")); err != nil {
		t.Fatal(err)
	}
	bring(t, p)
	if to, err := os.Readlink(filepath.Join(p.Dir(), "link")); err != nil || to != "/etc" {
		t.Errorf("the link leads to %q, %v", to, err)
	}
}

// TestRemoved: nothing is left of a host that has ended, nor of one that was killed once another starts; one that lives is left
// alone.
func TestRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "private")
	use := func(s *Store) string {
		set := s.Of("me")
		if len(set) == 0 {
			t.Skip("this machine has none of the directories")
		}
		at, own := set.Locate(set[0].Name())
		if !own {
			t.Fatal("there is no place")
		}
		if err := os.MkdirAll(filepath.Join(at, "shut", "deep"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(at, "shut"), 0); err != nil {
			t.Fatal(err)
		}
		return at
	}
	gone := func(at string) bool { _, err := os.Lstat(at); return os.IsNotExist(err) }
	killed, lives := Open(dir), Open(dir)
	left, kept := use(killed), use(lives)
	killed.sweeps.Wait()
	lives.sweeps.Wait()                         // it would hold the mark for a moment, and remove what is left itself
	if err := killed.mark.Close(); err != nil { // as the kernel does
		t.Fatal(err)
	}
	third := Open(dir)
	third.sweeps.Wait()
	if !gone(left) || gone(kept) {
		t.Errorf("what a killed host left is gone: %v; what a host uses: %v", gone(left), gone(kept))
	}
	if err := lives.Close(); err != nil || !gone(kept) {
		t.Errorf("closed: %v, gone %v", err, gone(kept))
	}
	own := use(third)
	remove, err := third.Of("me")[0].Clear()
	if err != nil || !gone(own) || remove() != nil {
		t.Errorf("cleared: %v", err)
	}
	if err := third.Close(); err != nil {
		t.Error(err)
	}
}

// TestMountPoints: files of the host have mount points that are links to one file, also where some were removed.
func TestMountPoints(t *testing.T) {
	p, host, _ := places(t)
	for _, name := range []string{"a", "b", "c"} {
		write(t, filepath.Join(host, name))
	}
	bring(t, p)
	for _, name := range []string{"a", "b"} {
		if err := os.Remove(filepath.Join(host, name)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(host, "d"))
	if fresh := bring(t, p); !slices.Equal(fresh, []string{"d"}) {
		t.Errorf("fresh are %q", fresh)
	}
	entries, err := os.ReadDir(p.Dir())
	if err != nil || len(entries) != 2 {
		t.Fatalf("the place holds %v, %v", entries, err)
	}
	first, err := entries[0].Info()
	if err != nil {
		t.Fatal(err)
	}
	if second, err := entries[1].Info(); err != nil || !os.SameFile(first, second) || first.Size() != 0 {
		t.Errorf("%v and %v are not links to one empty file: %v", first, second, err)
	}
}
