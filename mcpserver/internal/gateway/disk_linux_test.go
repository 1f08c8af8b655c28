package gateway

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fullDisk puts a file system without room on a new directory. free ends that.
func fullDisk(t *testing.T) (dir string, fill, free func()) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("mounting a tmpfs takes root: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	filler := filepath.Join(dir, "filler")
	fill = func() { _ = os.WriteFile(filler, make([]byte, 256<<10), 0o600) } // as much as there is
	free = func() {
		if err := os.Remove(filler); err != nil {
			t.Error(err)
		}
	}
	return dir, fill, free
}

// TestLoginDiskFull: a token is not renewed where the new one could not be kept, as the old one would be used up.
func TestLoginDiskFull(t *testing.T) {
	a := startAuthServer(t)
	dir, fill, free := fullDisk(t)
	g := loginGateway(t, a, dir)
	if err := g.Login(t.Context(), "s", a.browser(t)); err != nil {
		t.Fatal(err)
	}
	k, file := kept(t, dir)
	k.Token.ExpiresAt = time.Now().Add(-time.Minute)
	if err := os.WriteFile(file, marshal(k), 0o600); err != nil {
		t.Fatal(err)
	}
	fill()
	if err := say(t, g, localPrincipal); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("on a full disk: %v", err)
	}
	free()
	if err := say(t, g, localPrincipal); err != nil {
		t.Errorf("when there is room again: %v", err)
	}
}

// TestAcceptDiskFull: what could not be stored is not called accepted.
func TestAcceptDiskFull(t *testing.T) {
	dir, fill, free := fullDisk(t)
	e := &Entry{Name: "s", Trust: Project, File: "test"}
	s := openStore(dir, e, slog.New(slog.DiscardHandler))
	s.learned(e, offer{Instructions: "Do."}, true)
	changes := []Change{{Name: instructionsID, Is: readable(marshal("Do."))}}
	fill()
	if err := s.accept(changes); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("on a full disk: %v", err)
	}
	free()
	if err := s.accept(changes); err != nil {
		t.Error(err)
	}
	if _, ok := openStore(dir, e, slog.New(slog.DiscardHandler)).accepted(instructionsID); !ok {
		t.Error("it is not kept")
	}
}
