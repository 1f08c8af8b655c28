//go:build linux

package integration

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// tmpfs mounts a file system in memory on a directory, until the test ends. Without the right to, the test is skipped.
func tmpfs(t *testing.T, dir, options string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting a small file system takes root")
	}
	reaped(dir)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("mounting a small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// freeze makes a mounted file system read-only, and thaw undoes that.
func freeze(t *testing.T, dir string) {
	t.Helper()
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Skipf("making a file system read-only: %v", err)
	}
}

func thaw(t *testing.T, dir string) {
	t.Helper()
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT, ""); err != nil {
		t.Fatal(err)
	}
}

// fill uses up the space of a file system but for some bytes.
func fill(t *testing.T, dir string, leave int64) (file string) {
	t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(dir, "filler")
	size := int64(st.Bavail)*st.Bsize - leave
	if err := os.WriteFile(file, make([]byte, max(0, size)), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestFaultFull lets every change meet a full disk, then a read-only one, then one with room again.
func TestFaultFull(t *testing.T) {
	g := newGround(t)
	tmpfs(t, g.ws, "size=4m")
	all := victims()
	g.lay(all)
	s := g.start(stdioModern)
	for _, v := range all {
		s.call("Read", args{"file_path": v.name, "limit": 1})
	}
	unchanged := func() {
		t.Helper()
		for _, v := range all {
			if n, err := v.number(get(t, g.path(v.name))); err != nil || n != 0 {
				t.Errorf("%s holds number %d, %v", v.name, n, err)
			}
		}
		if left := leftovers(t, g.ws); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
	}
	filler := fill(t, g.ws, 8<<10)
	for _, v := range all {
		if v.inPlace && v.tool == "Edit" {
			continue // its size stays: it has the room it needs
		}
		s.refused(v.tool, v.change(g.path(v.name), 1), "free some space")
	}
	s.refused("Write", args{"file_path": "new.txt", "content": bulk(1, 100_000)}, "free some space")
	s.refused("Write", args{"file_path": "deep/er/new.txt", "content": bulk(1, 100_000)}, "free some space")
	if _, err := os.Lstat(g.path("deep")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directories of a file that could not be made are left: %v", err)
	}
	unchanged()
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	freeze(t, g.ws)
	for _, v := range all {
		s.refused(v.tool, v.change(g.path(v.name), 1), "read-only file system", "mounted read-only")
	}
	s.refused("Write", args{"file_path": "new.txt", "content": "x"}, "read-only file system", "mounted read-only")
	s.refused("Write", args{"file_path": "a/b/new.txt", "content": "x"}, "read-only file system", "mounted read-only")
	if text, failed := s.try("Bash", args{"command": "echo hello; touch x"}); !failed || !strings.Contains(text, "hello") {
		t.Errorf("a command on a read-only file system: %v, %s", failed, text)
	}
	unchanged()
	thaw(t, g.ws)
	for _, v := range all {
		s.call(v.tool, v.change(g.path(v.name), 1))
		if n, err := v.number(get(t, g.path(v.name))); err != nil || n != 1 {
			t.Errorf("with room again, %s holds number %d, %v", v.name, n, err)
		}
	}
	s.end()
	g.checkHistory(t, g.path("renamed"))
	g.tidy()
}

// TestFaultStateFull fills the disk of the state directory. Files are changed all the same where that is safe, and each result says
// what it cannot keep.
func TestFaultStateFull(t *testing.T) {
	g := newGround(t)
	if err := os.MkdirAll(g.state, 0o700); err != nil {
		t.Fatal(err)
	}
	tmpfs(t, g.state, "size=1m")
	all := victims()
	g.lay(all)
	s := g.start(stdioModern)
	for _, v := range all {
		s.call("Read", args{"file_path": v.name, "limit": 1})
	}
	filler := fill(t, g.state, 0)
	for _, v := range all {
		text, failed := s.try(v.tool, v.change(g.path(v.name), 1))
		n, err := v.number(get(t, g.path(v.name)))
		switch {
		case err != nil:
			t.Error(err)
		case failed && (n != 0 || !strings.Contains(text, "space")):
			t.Errorf("%s: refused, and it holds number %d: %s", v.name, n, text)
		case !failed && (n != 1 || !strings.Contains(text, "cannot be undone")):
			t.Errorf("%s: made, and it holds number %d: %.300s", v.name, n, text)
		case v.inPlace && !failed:
			t.Errorf("%s was written in place without a journal", v.name)
		}
	}
	text := s.call("Bash", args{"command": "seq 100000"})
	if !strings.Contains(text, "could not be kept") || !strings.Contains(text, "100000") {
		t.Errorf("a long result on a full disk: %s", text[max(0, len(text)-600):])
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if text := s.call("Bash", args{"command": "seq 50000"}); !strings.Contains(text, "results/") {
		t.Errorf("a long result with room again: %s", text[max(0, len(text)-600):])
	}
	s.end()
	g.tidy()
}

// TestFaultDescriptors takes the host's descriptors away while it works, and gives them back.
func TestFaultDescriptors(t *testing.T) {
	g := newGround(t)
	all := victims()
	for _, v := range all {
		g.put(v.name, v.content(0))
	}
	s := g.start(stdioModern)
	for _, v := range all {
		s.call("Read", args{"file_path": v.name, "limit": 1})
	}
	s.call("Bash", args{"command": "true"})
	pid := s.cmd.Process.Pid
	var had unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &had); err != nil {
		t.Skipf("limiting the host's descriptors: %v", err)
	}
	refused := 0
	for extra := range 14 {
		little := unix.Rlimit{Cur: leave(t, pid, extra), Max: had.Max}
		if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &little, nil); err != nil {
			t.Fatal(err)
		}
		for _, v := range all {
			v.tried = v.acked + 1
			text, failed := s.try(v.tool, v.change(g.path(v.name), v.tried))
			n, err := v.number(get(t, g.path(v.name)))
			switch {
			case err != nil:
				t.Error(err)
			case failed && n != v.acked || !failed && n != v.tried:
				t.Errorf("%s: failed %v, and it holds number %d after %d: %.300s", v.name, failed, n, v.acked, text)
			case failed && !strings.Contains(text, "too many open files"):
				t.Errorf("%s: an error that does not say why: %s", v.name, text)
			}
			if failed {
				refused++
			}
			v.acked = n
		}
		// Not Bash: a sandbox that starts now would keep the limit.
		for tool, a := range map[string]args{
			"Grep": {"pattern": "number"}, "Glob": {"pattern": "**"}, "Read": {"file_path": "renamed/edited.txt", "limit": 1},
		} {
			if text, failed := s.try(tool, a); failed && !strings.Contains(text, "too many open files") {
				t.Errorf("%s with %d descriptors: %s", tool, extra, text)
			}
		}
	}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &had, nil); err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		s.call(v.tool, v.change(g.path(v.name), v.acked+1))
	}
	s.call("Bash", args{"command": "echo on"})
	s.end()
	g.checkHistory(t, g.ws)
	g.tidy()
	t.Logf("%d changes were refused for want of descriptors", refused)
}

// leave is the limit of descriptors under which a process can open so many more.
func leave(t *testing.T, pid, more int) uint64 {
	t.Helper()
	limit := 0
	for ; more > 0; limit++ {
		if _, err := os.Lstat(fmt.Sprintf("/proc/%d/fd/%d", pid, limit)); errors.Is(err, fs.ErrNotExist) {
			more--
		}
	}
	return uint64(limit)
}

// spoils are what can happen to a state directory.
var spoils = []struct {
	name  string
	spoil func(t *testing.T, state string)
}{
	{"deleted", func(t *testing.T, state string) { must(t, os.RemoveAll(state)) }},
	{"moved", func(t *testing.T, state string) { must(t, os.Rename(state, state+".moved")) }},
	{"emptied", func(t *testing.T, state string) {
		entries, err := os.ReadDir(state)
		must(t, err)
		for _, e := range entries {
			must(t, os.RemoveAll(filepath.Join(state, e.Name())))
		}
	}},
	{"a file", func(t *testing.T, state string) {
		must(t, os.RemoveAll(state))
		must(t, os.WriteFile(state, []byte("not a directory"), 0o600))
	}},
	{"files cut short", func(t *testing.T, state string) {
		eachFile(t, state, func(path string, size int64) { must(t, os.Truncate(path, size/2)) })
	}},
	{"files emptied", func(t *testing.T, state string) {
		eachFile(t, state, func(path string, _ int64) { must(t, os.Truncate(path, 0)) })
	}},
	{"files garbled", func(t *testing.T, state string) {
		eachFile(t, state, func(path string, size int64) {
			noise := make([]byte, size)
			for i := range noise {
				noise[i] = byte(rand.Uint32())
			}
			must(t, os.WriteFile(path, noise, 0o600))
		})
	}},
	{"files are directories", func(t *testing.T, state string) {
		eachFile(t, state, func(path string, _ int64) {
			must(t, os.Remove(path))
			must(t, os.Mkdir(path, 0o700))
		})
	}},
	{"directories are files", func(t *testing.T, state string) {
		entries, err := os.ReadDir(state)
		must(t, err)
		for _, e := range entries {
			if path := filepath.Join(state, e.Name()); e.IsDir() {
				must(t, os.RemoveAll(path))
				must(t, os.WriteFile(path, []byte("x"), 0o600))
			}
		}
	}},
	{"read-only", func(t *testing.T, state string) {
		if os.Geteuid() == 0 {
			readOnlyMount(t, state)
			return
		}
		must(t, filepath.WalkDir(state, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				t.Cleanup(func() { _ = os.Chmod(path, 0o700) })
			}
			return err
		}))
		must(t, filepath.WalkDir(state, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				err = os.Chmod(path, 0o500)
			}
			return err
		}))
	}},
}

// eachFile calls do for every regular file below a directory.
func eachFile(t *testing.T, dir string, do func(path string, size int64)) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		info, err := e.Info()
		if err == nil {
			do(path, info.Size())
		}
		return err
	}))
}

// readOnlyMount lays a directory over itself, read-only.
func readOnlyMount(t *testing.T, dir string) {
	t.Helper()
	reaped(dir)
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("mounting a directory over itself: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		t.Skipf("making a mount read-only: %v", err)
	}
}

// TestFaultState spoils the state directory, between two runs of the host and under one that runs. Calls go on: what is kept in it is a
// help and no condition, except for writing in place, which is refused where it could not be taken back.
func TestFaultState(t *testing.T) {
	for _, sp := range spoils {
		for _, running := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/running=%v", sp.name, running), func(t *testing.T) {
				t.Parallel()
				g := newGround(t)
				g.put("a.txt", "number 0\n")
				s := g.start(stdioModern)
				n := 0
				s.work(&n)
				if !running {
					s.end()
				}
				if running {
					s.standStill(func() { sp.spoil(t, g.state) }) // it writes in the background, too
				} else {
					sp.spoil(t, g.state)
					s = g.start(stdioModern)
				}
				s.work(&n)
				s.work(&n)
				s.kill()
				s = g.start(stdioModern)
				s.work(&n)
				if err := s.stop(); err != nil && !strings.Contains(s.stderr.String(), g.state) {
					t.Errorf("%v, and it does not say where:\n%s", err, s.stderr)
				}
				if left := leftovers(t, g.ws); len(left) > 0 {
					t.Errorf("left behind: %q", left)
				}
			})
		}
	}
}

// standStill does something while the host is stopped.
func (s *session) standStill(do func()) {
	s.t.Helper()
	must(s.t, s.cmd.Process.Signal(syscall.SIGSTOP))
	defer func() { must(s.t, s.cmd.Process.Signal(syscall.SIGCONT)) }()
	for err := error(unix.EINTR); err != nil; {
		if err = unix.Waitid(unix.P_PID, s.cmd.Process.Pid, nil, unix.WSTOPPED, nil); err != nil && !errors.Is(err, unix.EINTR) {
			s.t.Fatal(err)
		}
	}
	do()
}

// work uses everything that keeps something in the state directory.
func (s *session) work(n *int) {
	s.t.Helper()
	s.call("Read", args{"file_path": "a.txt"})
	s.call("Edit", args{"file_path": "a.txt", "old_string": fmt.Sprintf("number %d\n", *n), "new_string": fmt.Sprintf("number %d\n", *n+1)})
	*n++
	if text := s.call("Read", args{"file_path": "a.txt"}); !strings.Contains(text, fmt.Sprintf("number %d", *n)) {
		s.t.Errorf("after edit %d: %s", *n, text)
	}
	if text := s.call("Bash", args{"command": "seq 20000"}); !strings.Contains(text, "20000") {
		s.t.Errorf("a long result: %s", text[max(0, len(text)-600):])
	}
	p, err := s.Start(s.ctx, "Read", args{"file_path": "a.txt"}.String(), conversation("exact"))
	if err != nil {
		s.t.Fatal(err)
	}
	if r, err := p.Result(s.ctx); err != nil || r.IsError {
		s.t.Errorf("in an exact scope: %v, %v", r, err)
	}
}
