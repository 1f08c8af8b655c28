//go:build slow

package fault

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/integration/host"
)

// mountDead mounts a file system that no process serves: each system call on it waits.
func mountDead(t *testing.T) string {
	t.Helper()
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skip("no FUSE here: ", err)
	}
	dir := t.TempDir()
	if err := unix.Mount("dead", dir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fd)); err != nil {
		unix.Close(fd)
		t.Skip("no file system can be mounted here: ", err)
	}
	t.Cleanup(func() {
		_ = unix.Unmount(dir, unix.MNT_DETACH)
		unix.Close(fd) // ends what waits
	})
	return dir
}

// TestFaultDeadRoot starts hosts and commands with a root on a file system that does not answer. Calls are refused, and
// commands fail, with the reason.
func TestFaultDeadRoot(t *testing.T) {
	t.Parallel() // it waits
	const reason = "does not answer: unmount it"
	dir := mountDead(t)
	for _, args := range [][]string{{"doctor", "--quick"}, {"rules"}, {"http", "--listen", "127.0.0.1:0"},
		{"run", "--weaker"}, {"install", "claude-code", "--force", "--dry-run"}} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			args = append(args, "--root", dir)
			if args[0] == "run" {
				args = append(args, "--", "true")
			}
			home := t.TempDir()
			host.Must(t, os.Mkdir(filepath.Join(home, "work"), 0o755))
			if out, status := host.RunCommand(t, home, args...); status == 0 || !strings.Contains(out, reason) {
				t.Errorf("%v: status %d: %s", args, status, out)
			}
		})
	}
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithTimeout(context.Background(), host.Patience)
		defer cancel()
		home := t.TempDir()
		h, err := host.StartHost(ctx, host.StdioModern, home, host.CleanEnv(home), "--root", dir)
		host.Must(t, err)
		s := &host.Session{Host: h, T: t, Ctx: ctx}
		if out, failed := s.Try("Read", host.Args{"file_path": "a.txt"}); !failed || !strings.Contains(out, reason) {
			t.Errorf("Read: %s", out)
		}
		s.End()
	})
}
