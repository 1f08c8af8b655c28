package sandbox

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// newOverlaid starts a sandbox whose commands write in overlays.
func newOverlaid(t *testing.T, change func(*fixture, *Policy)) (*fixture, *Sandbox, func(script, want string)) {
	t.Helper()
	f := newFixture(t)
	f.overlay = true
	p := f.policy()
	if change != nil {
		change(f, &p)
	}
	s := start1(t, p)
	if s.Report().Backend != Namespaces {
		t.Skip("no namespaces here")
	}
	return f, s, func(script, want string) {
		t.Helper()
		if r := runIn(t, s, f.ws, f.env, "/bin/bash", "-c", script); !strings.Contains(r.output, want) ||
			strings.Contains(r.output, secret) {
			t.Errorf("%s: want %q, got\n%s", script, want, r.output)
		}
	}
}

func needsOverlays(t *testing.T, s *Sandbox) {
	t.Helper()
	if err := s.NoOverlay(); err != nil {
		t.Skip(err)
	}
}

func TestOverlayLimit(t *testing.T) {
	f, s, run := newOverlaid(t, func(_ *fixture, p *Policy) { p.Overlay = 4 << 20 })
	needsOverlays(t, s)
	before := f.snapshot(t)
	run(`head -c 3000000 /dev/zero > a && head -c 3000000 /dev/zero > "$TMPDIR/b"; ls -l a`, "No space left on device")
	run(`rm a "$TMPDIR/b" && head -c 3000000 /dev/zero > c && stat -c %s c`, "3000000")
	if diff := cmp.Diff(before, f.snapshot(t)); diff != "" {
		t.Error(diff)
	}
}

// TestOverlayRefresh: commands see what other programs change, and what is denied stays hidden.
func TestOverlayRefresh(t *testing.T) {
	f, s, run := newOverlaid(t, nil)
	needsOverlays(t, s)
	run("cat go.mod src/main.go src/new missing; ls src late; echo own > src/own", "package main")
	for _, err := range []error{
		os.WriteFile(f.ws+"/go.mod.tmp", []byte("replaced\n"), 0o644), os.Rename(f.ws+"/go.mod.tmp", f.ws+"/go.mod"),
		os.WriteFile(f.ws+"/src/new", []byte("made\n"), 0o644), os.Remove(f.ws + "/src/main.go"),
		os.Mkdir(f.ws+"/late", 0o755),
		os.WriteFile(f.ws+"/late/.env", []byte(secret), 0o644), os.WriteFile(f.ws+"/missing", []byte(secret), 0o644),
		os.WriteFile(f.ws+"/late/kept", []byte("kept\n"), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Deny(f.ws+"/missing", f.ws+"/late/.env"); err != nil {
		t.Fatal(err)
	}
	if err := s.Hold(f.ws + "/late/kept"); err != nil {
		t.Fatal(err)
	}
	if err := s.Refresh(); err != nil {
		t.Fatal(err)
	}
	run("cat go.mod src/*; ls src", "replaced\nmade\nown\nnew\nown\n")
	run("cat missing late/.env; mv late later; cat later/.env; rm -rf late; ls -A late; cat late/.env",
		"ermission denied")
	run("echo x > late/kept; rm late/kept; cat late/kept", "kept")
	run("echo mine > .env2 && ln .env2 l && echo x > l && cat .env2; rm -rf conf; mkdir -p conf; cat conf/.env", "x\n")
}

// TestOverlayPrivate: a private directory is an overlay of the one that takes its place, with what is shown of the
// host.
func TestOverlayPrivate(t *testing.T) {
	private := Private{}
	f, s, run := newOverlaid(t, func(f *fixture, p *Policy) {
		private = Private{Name: f.out, Dir: f.base + "/private", Shown: []string{"public"}}
		write(t, private.Dir+"/public", "")
		write(t, private.Dir+"/own", "own\n")
		p.Private, p.Temporary = []Private{private}, append(p.Temporary, f.out)
	})
	needsOverlays(t, s)
	before := f.snapshot(t)
	run(`cat "$OUT/public" "$OUT/own"; echo x > "$OUT/own"; echo y > "$OUT/y"; echo z > "$OUT/public"; cat "$OUT"/[oy]*`, "public\nown\n")
	run(`cat "$OUT"/[oy]*`, "x\ny\n")
	if diff := cmp.Diff(before, f.snapshot(t)); diff != "" {
		t.Error(diff)
	}
	write(t, f.out+"/fresh", "fresh\n")
	write(t, private.Dir+"/fresh", "")
	private.Shown = append(private.Shown, "fresh")
	if err := s.Refresh(); err != nil {
		t.Fatal(err)
	}
	if err := s.Show(private, "fresh"); err != nil {
		t.Fatal(err)
	}
	run(`cat "$OUT/fresh"`, "fresh\n")
}

// TestNoOverlay: what cannot be an overlay is read-only, but for temporary directories. The kernel makes none of a
// directory in which another file system is mounted.
func TestNoOverlay(t *testing.T) {
	mounted := func(dir string) {
		if err := unix.Mount("none", dir, "tmpfs", 0, ""); err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	}
	f, s, run := newOverlaid(t, func(f *fixture, p *Policy) {
		mounted(f.ws + "/src")
		mounted(f.tmp)
		write(t, f.base+"/private/public", "")
		write(t, f.base+"/private/sub/x", "")
		mounted(f.base + "/private/sub")
		p.Private, p.Temporary = []Private{{Name: f.out, Dir: f.base + "/private",
			Shown: []string{"public"}}}, append(p.Temporary, f.out)
	})
	if s.NoOverlay() == nil {
		t.Error("nothing is said of a directory without an overlay")
	}
	before := f.snapshot(t)
	run(`echo x > new; echo x > src/new; echo y > "$TMPDIR/y"; cat "$TMPDIR/y"; ls new src`, "y\n")
	run(`echo x > go.mod; rm -r src`, "Read-only file system")
	run(`echo z > "$OUT/z"; cat "$OUT/z" "$OUT/public"`, "z\npublic\n")
	if diff := cmp.Diff(before, f.snapshot(t)); diff != "" {
		t.Error(diff)
	}
	for _, b := range backendsUnderTest() {
		f := newFixture(t)
		f.overlay = true
		if b == Namespaces {
			continue
		}
		s, err := Start(t.Context(), f.policy(), Options{Backends: []Backend{b}})
		if errors.Is(err, ErrUnavailable) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		before := f.snapshot(t)
		r := runIn(t, s, f.ws, f.env, "/bin/bash", "-c",
			`echo x > new; echo x > src/main.go; echo y > "$TMPDIR/y"; cat "$TMPDIR/y"`)
		delete(before, "tmp")
		after := f.snapshot(t)
		delete(after, "tmp")
		delete(after, "tmp/y")
		if diff := cmp.Diff(before, after); diff != "" || !strings.Contains(r.output, "y\n") || s.NoOverlay() == nil {
			t.Errorf("%s: %v\n%s\n%s", b, s.NoOverlay(), r.output, diff)
		}
	}
}
