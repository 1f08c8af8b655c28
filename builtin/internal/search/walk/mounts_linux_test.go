package walk

import (
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
