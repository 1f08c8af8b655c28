//go:build slow && linux

package fault

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

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/testenv"
	"golang.org/x/sys/unix"
)

// TestFaultState spoils the state directory, between two runs of the host and under one that runs. Calls go on: what is kept in it is a
// help and no condition, except for writing in place, which is refused where it could not be taken back.
func TestFaultState(t *testing.T) {
	for _, sp := range spoils {
		for _, running := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/running=%v", sp.name, running), func(t *testing.T) {
				t.Parallel()
				g := newGround(t)
				g.Put("a.txt", "number 0\n")
				s := g.start(host.StdioModern)
				n := 0
				s.work(&n)
				if !running {
					s.End()
				}
				if running {
					s.standStill(func() { sp.spoil(t, g.State) }) // it writes in the background, too
				} else {
					sp.spoil(t, g.State)
					s = g.start(host.StdioModern)
				}
				s.work(&n)
				s.work(&n)
				s.Kill()
				s = g.start(host.StdioModern)
				s.work(&n)
				if err := s.Stop(); err != nil && !strings.Contains(s.Stderr.String(), g.State) {
					t.Errorf("%v, and it does not say where:\n%s", err, s.Stderr)
				}
				if left := host.Leftovers(t, g.WS); len(left) > 0 {
					t.Errorf("left behind: %q", left)
				}
			})
		}
	}
}

// standStill does something while the host is stopped.
func (s *session) standStill(do func()) {
	s.T.Helper()
	host.Must(s.T, s.Cmd.Process.Signal(syscall.SIGSTOP))
	defer func() { host.Must(s.T, s.Cmd.Process.Signal(syscall.SIGCONT)) }()
	for err := error(unix.EINTR); err != nil; {
		if err = unix.Waitid(unix.P_PID, s.Cmd.Process.Pid, nil, unix.WSTOPPED, nil); err != nil &&
			!errors.Is(err, unix.EINTR) {
			s.T.Fatal(err)
		}
	}
	do()
}

// work uses everything that keeps something in the state directory.
func (s *session) work(n *int) {
	s.T.Helper()
	s.MustCall("Read", host.Args{"file_path": "a.txt"})
	s.MustCall("Edit", host.Args{"file_path": "a.txt", "old_string": fmt.Sprintf("number %d\n", *n),
		"new_string": fmt.Sprintf("number %d\n", *n+1)})
	*n++
	if text := s.MustCall("Read", host.Args{"file_path": "a.txt"}); !strings.Contains(text,
		fmt.Sprintf("number %d", *n)) {
		s.T.Errorf("after edit %d: %s", *n, text)
	}
	if text := s.MustCall("Bash", host.Args{"command": "seq 20000"}); !strings.Contains(text, "20000") {
		s.T.Errorf("a long result: %s", text[max(0, len(text)-600):])
	}
	p, err := s.Start(s.Ctx, "Read", host.Args{"file_path": "a.txt"}.String(), host.Conversation("exact"))
	if err != nil {
		s.T.Fatal(err)
	}
	if r, err := p.Result(s.Ctx); err != nil || r.IsError {
		s.T.Errorf("in an exact scope: %v, %v", r, err)
	}
}

// spoils are what can happen to a state directory.
var spoils = []struct {
	name  string
	spoil func(t *testing.T, state string)
}{
	{"deleted", func(t *testing.T, state string) { host.Must(t, os.RemoveAll(state)) }},
	{"moved", func(t *testing.T, state string) { host.Must(t, os.Rename(state, state+".moved")) }},
	{"emptied", func(t *testing.T, state string) {
		entries, err := os.ReadDir(state)
		host.Must(t, err)
		for _, e := range entries {
			host.Must(t, os.RemoveAll(filepath.Join(state, e.Name())))
		}
	}},
	{"a file", func(t *testing.T, state string) {
		host.Must(t, os.RemoveAll(state))
		host.Must(t, os.WriteFile(state, []byte("not a directory"), 0o600))
	}},
	{"files cut short", func(t *testing.T, state string) {
		eachFile(t, state, func(path string, size int64) { host.Must(t, os.Truncate(path, size/2)) })
	}},
	{"files emptied", func(t *testing.T, state string) {
		eachFile(t, state, func(path string, _ int64) { host.Must(t, os.Truncate(path, 0)) })
	}},
	{"files garbled", func(t *testing.T, state string) {
		eachFile(t, state, func(path string, size int64) {
			noise := make([]byte, size)
			for i := range noise {
				noise[i] = byte(rand.Uint32())
			}
			host.Must(t, os.WriteFile(path, noise, 0o600))
		})
	}},
	{"files are directories", func(t *testing.T, state string) {
		eachFile(t, state, func(path string, _ int64) {
			host.Must(t, os.Remove(path))
			host.Must(t, os.Mkdir(path, 0o700))
		})
	}},
	{"directories are files", func(t *testing.T, state string) {
		entries, err := os.ReadDir(state)
		host.Must(t, err)
		for _, e := range entries {
			if path := filepath.Join(state, e.Name()); e.IsDir() {
				host.Must(t, os.RemoveAll(path))
				host.Must(t, os.WriteFile(path, []byte("x"), 0o600))
			}
		}
	}},
	{"read-only", func(t *testing.T, state string) {
		if os.Geteuid() == 0 {
			host.ReadOnlyMount(t, state)
			return
		}
		host.Must(t, filepath.WalkDir(state, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				t.Cleanup(func() { _ = os.Chmod(path, 0o700) })
			}
			return err
		}))
		host.Must(t, filepath.WalkDir(state, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				err = os.Chmod(path, 0o500)
			}
			return err
		}))
	}},
}

// TestFaultDescriptors takes the host's descriptors away while it works, and gives them back.
func TestFaultDescriptors(t *testing.T) {
	testenv.NeedsNamespaces(t)
	g := newGround(t)
	all := victims()
	for _, v := range all {
		g.Put(v.name, v.content(0))
	}
	s := g.start(host.StdioModern)
	for _, v := range all {
		s.MustCall("Read", host.Args{"file_path": v.name, "limit": 1})
	}
	s.MustCall("Bash", host.Args{"command": "true"})
	pid := s.Cmd.Process.Pid
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
			text, failed := s.Try(v.tool, v.change(g.Path(v.name), v.tried))
			n, err := v.number(host.Get(t, g.Path(v.name)))
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
		for tool, a := range map[string]host.Args{
			"Grep": {"pattern": "number"}, "Glob": {"pattern": "**"}, "Read": {"file_path": "renamed/edited.txt", "limit": 1},
		} {
			if text, failed := s.Try(tool, a); failed && !strings.Contains(text, "too many open files") {
				t.Errorf("%s with %d descriptors: %s", tool, extra, text)
			}
		}
	}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &had, nil); err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		s.MustCall(v.tool, v.change(g.Path(v.name), v.acked+1))
	}
	s.MustCall("Bash", host.Args{"command": "echo on"})
	s.End()
	g.checkHistory(t, g.WS)
	g.Tidy()
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
