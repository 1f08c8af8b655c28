package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// layer returns an overlay of a directory of the fixture, whose layer has a name.
func (f *fixture) layer(t *testing.T, dir, name string) Cache {
	t.Helper()
	own := filepath.Join(f.base, "state", name)
	o := Cache{Name: filepath.Join(f.base, dir), Upper: filepath.Join(own, "upper"), Work: filepath.Join(own, "work")}
	for _, d := range []string{o.Upper, o.Work} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// cached adds a cache with a secret to the fixture.
func (f *fixture) cached(t *testing.T) {
	t.Helper()
	for name, text := range map[string]string{
		"mod/a/go.mod": "module a\n", "mod/list": "a\n",
		"credentials": secret + "\n", "late/key": secret + "-late\n", "deep/dir/key": secret + "-deep\n",
	} {
		write(t, filepath.Join(f.base, "cache", name), text)
	}
	f.env = append(f.env, "CACHE="+f.base+"/cache")
}

// startLayered starts a sandbox with overlays, and skips the test where there are none.
func startLayered(t *testing.T, p Policy, layers ...Cache) *Sandbox {
	t.Helper()
	p.Caches = layers
	s, err := Start(context.Background(), p, Options{Backends: []Backend{Namespaces}})
	if errors.Is(err, ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if len(s.Cached()) == 0 {
		t.Skip("this kernel mounts no overlays here")
	}
	return s
}

// TestCache: commands see the host's directory and change a layer of their own, which lasts.
func TestCache(t *testing.T) {
	f := newFixture(t)
	f.cached(t)
	before := f.snapshot(t)
	for _, c := range []struct{ name, layer, script, want string }{
		{"reads", "own", `cat "$CACHE/mod/list"; ls "$CACHE/mod"`, "a\na\nlist\n"},
		{"writes", "own", `mkdir "$CACHE/mod/b" && echo b >> "$CACHE/mod/list" && rm -r "$CACHE/mod/a" && cat "$CACHE/mod/list"`, "a\nb\n"},
		{"keeps", "own", `cat "$CACHE/mod/list"; ls "$CACHE/mod"`, "a\nb\nb\nlist\n"},
		{"gives to no other", "other", `cat "$CACHE/mod/list"; ls "$CACHE/mod"`, "a\na\nlist\n"},
	} {
		layer := f.layer(t, "cache", c.layer)
		if err := os.RemoveAll(layer.Work); err != nil { // as a person does who wants the layer to last
			t.Fatal(err)
		}
		s := startLayered(t, f.policy(), f.layer(t, "cache", c.layer))
		if r := runIn(t, s, f.ws, f.env, "/bin/sh", "-c", c.script); r.output != c.want {
			t.Errorf("%s: got %q, want %q", c.name, r.output, c.want)
		}
		s.Close()
	}
	if diff := cmp.Diff(outside(before), outside(f.snapshot(t))); diff != "" {
		t.Errorf("the host's files changed (-before +after):\n%s", diff)
	}
}

// outside leaves the layers out of a snapshot.
func outside(files map[string]string) map[string]string {
	for name := range files {
		if strings.HasPrefix(name, "state/") {
			delete(files, name)
		}
	}
	return files
}

// TestCacheAttacks: what is hidden in the lower directory stays so, whatever a command does with the overlay.
func TestCacheAttacks(t *testing.T) {
	f := newFixture(t)
	f.cached(t)
	p := f.policy()
	p.Masked = append(p.Masked, f.base+"/cache/credentials")
	p.Denied = append(p.Denied, f.base+"/cache/deep/dir/key")
	s := startLayered(t, p, f.layer(t, "cache", "own"))
	if err := s.Deny(f.base + "/cache/late/key"); err != nil {
		t.Fatal(err)
	}
	before := outside(f.snapshot(t))
	for _, a := range []attack{
		{name: "read", script: `cd "$CACHE"; cat credentials deep/dir/key late/key; grep -r TOP .`},
		{name: "hard link", script: `cd "$CACHE"; ln credentials l && cat l; ln deep/dir/key k && cat k`},
		{name: "rename", script: `cd "$CACHE"; mv credentials c; cat c; mv deep d; cat d/dir/key; mv deep/dir deep/e; cat deep/e/key`},
		{name: "removal", script: `cd "$CACHE"; rm -rf credentials deep late; mkdir -p deep/dir; cat credentials deep/dir/key`},
		{name: "mode", script: `cd "$CACHE"; chmod 644 credentials deep/dir/key; cat credentials deep/dir/key`},
		{name: "attributes", script: `cd "$CACHE"; for d in . deep mod late; do
setfattr -n user.overlay.redirect -v /deep $d; setfattr -n user.overlay.opaque -v y $d; done; find . -name key | xargs cat; cat mod/dir/key`},
		{name: "exchange", script: `cd "$CACHE"; echo x > x; mkdir y; $ATTACK exchange x credentials; $ATTACK exchange y deep; cat x y/dir/key`},
		{name: "layers", script: `cat "$STATE"/own/*/*; ls "$STATE/own" | grep . && echo BREACH`},
		{name: "umount", script: `umount -l "$CACHE"; unshare -Urm umount -l "$CACHE" && echo BREACH; cat "$CACHE/credentials"`},
		{name: "new masks", script: `cd "$CACHE"; mv late l2 && mkdir late; cat late/key l2/key`},
		{name: "setuid", script: `cp /bin/true "$CACHE/s"; chmod u+s "$CACHE/s"; find "$CACHE" -perm /6000 | grep . && echo BREACH`},
		{name: "device", script: `$ATTACK mknod "$CACHE/disk"`},
	} {
		r := runIn(t, s, f.ws, f.env, "/bin/bash", "-c", a.script)
		if strings.Contains(r.output, secret) || strings.Contains(r.output, breach) {
			t.Errorf("%s got through:\n%s", a.name, r.output)
		}
	}
	if diff := cmp.Diff(before, outside(f.snapshot(t))); diff != "" {
		t.Errorf("changed what is guarded (-before +after):\n%s", diff)
	}
}

// TestCacheRefused: a directory is mounted read-only, or as the policy says, where an overlay cannot be had or would
// undo that.
func TestCacheRefused(t *testing.T) {
	f := newFixture(t)
	f.cached(t)
	first := f.layer(t, "cache", "first")
	lost := f.layer(t, "out", "lost")
	lost.Work = f.base + "/none"
	p := f.policy()
	p.Denied = append(p.Denied, f.base+"/home")
	p.Sockets = []string{f.base + "/socks/s"}
	write(t, f.base+"/socks/s", "")
	write(t, f.base+"/new/x", "")
	s := startLayered(t, p, first, lost, f.layer(t, "ws/src", "writable"), f.layer(t, "home", "denied"),
		f.layer(t, "socks", "sockets"), f.layer(t, "new", "new"))
	want := []string{f.base + "/cache", f.base + "/new"}
	if got := s.Cached(); !slices.Equal(got, want) {
		t.Errorf("overlays of %q, want %q", got, want)
	}
	const script = `echo x > "$OUT/new"; echo x > "$BASE/home/new"; echo x > "$BASE/socks/new"; echo x > src/kept; echo x > "$BASE/new/lost"`
	runIn(t, s, f.ws, f.env, "/bin/sh", "-c", script)
	var made []string
	for _, name := range []string{"out/new", "home/new", "socks/new", "ws/src/kept", "new/lost"} {
		if _, err := os.Lstat(filepath.Join(f.base, name)); err == nil {
			made = append(made, name)
		}
	}
	if !slices.Equal(made, []string{"ws/src/kept"}) {
		t.Errorf("the command created %q", made)
	}
}
