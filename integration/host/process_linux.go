package host

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What the tests see of processes is what the kernel shows of them in /proc: nothing of the host is exposed for it.

// NewTag returns a word that marks the processes of one command.
func NewTag() string { return "toolhost-tag-" + rand.Text() }

// Tagged returns the processes that carry a tag in their arguments or their environment.
func Tagged(t *testing.T, tag string) []int {
	t.Helper()
	var found []int
	for _, pid := range Processes(t) {
		for _, name := range []string{"cmdline", "environ"} {
			raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
			if err == nil && bytes.Contains(raw, []byte(tag)) { // an error: it ended, or is not ours
				found = append(found, pid)
				break
			}
		}
	}
	return found
}

// Processes lists the processes of this machine.
func Processes(t *testing.T) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// FarProcesses returns the processes of toolhost dial with a state directory: hosts for relays, or those that connect
// to one.
func FarProcesses(t *testing.T, state string, hosts bool) []int {
	t.Helper()
	return Running(t, func(line string) bool {
		return strings.Contains(line, filepath.Join(state, "program")) && strings.Contains(line, "--serve=") == hosts
	})
}

// Running returns the processes with a command line of some kind.
func Running(t *testing.T, kind func(line string) bool) (pids []int) {
	t.Helper()
	for _, pid := range Processes(t) {
		raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // it may have ended
		if kind(string(raw)) {
			pids = append(pids, pid)
		}
	}
	// Until it calls exec, a child has the command line of its parent.
	return slices.DeleteFunc(slices.Clone(pids), func(pid int) bool {
		parent, _ := ParentOf(pid)
		return slices.Contains(pids, parent)
	})
}

// FarProgram puts the program where toolhost remote finds it in a state directory, so that it is not sent.
func FarProgram(t *testing.T, state string) {
	t.Helper()
	raw, err := os.ReadFile(Binary)
	Must(t, err)
	dir := filepath.Join(state, "program", fmt.Sprintf("dev-%x", sha256.Sum256(raw))[:len("dev-")+12])
	Must(t, os.MkdirAll(dir, 0o700))
	program := filepath.Join(dir, "toolhost")
	if os.Link(Binary, program) != nil { // it is of another file system
		Must(t, os.WriteFile(program, raw, 0o755))
	}
}

// FarEnded waits for the end of the hosts for relays.
func FarEnded(t *testing.T, state string) {
	t.Helper()
	Eventually(t, func() string {
		if pids := FarProcesses(t, state, true); len(pids) > 0 {
			return fmt.Sprintf("hosts %v still run", pids)
		}
		return ""
	})
}

// Descendants returns the living processes below one, which is not among them.
func Descendants(t *testing.T, pid int) []int {
	t.Helper()
	children := map[int][]int{}
	for _, p := range Processes(t) {
		if parent, state := ParentOf(p); state != 'Z' {
			children[parent] = append(children[parent], p)
		}
	}
	var below []int
	for next := children[pid]; len(next) > 0; next = next[1:] {
		below = append(below, next[0])
		next = append(next, children[next[0]]...)
	}
	return below
}

// ParentOf returns the parent of a process and its state, zeros if it has ended.
func ParentOf(pid int) (parent int, state byte) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0
	}
	_, rest, _ := strings.Cut(string(raw[bytes.LastIndexByte(raw, ')'):]), " ") // the name before may hold anything
	if _, err := fmt.Sscanf(rest, "%c %d", &state, &parent); err != nil {
		return 0, 0
	}
	return parent, state
}

// A Watched process can be waited for, whoever's child it is.
type Watched struct {
	pid int
	fd  int
}

// Watch watches a running process until the test ends.
func Watch(t *testing.T, pid int) Watched {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatalf("watching process %d: %v", pid, err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return Watched{pid, fd}
}

// End waits until the process has ended and returns how long that took.
func (w Watched) End(t *testing.T) time.Duration {
	t.Helper()
	start := time.Now()
	for time.Since(start) < Patience {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(w.fd), Events: unix.POLLIN}}, int(time.Second.Milliseconds()))
		if err != nil && !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
		if n > 0 {
			return time.Since(start)
		}
	}
	t.Errorf("process %d has not ended after %v", w.pid, Patience)
	return Patience
}

// Survivors waits until no process carries the tag.
func Survivors(t *testing.T, tag string) {
	t.Helper()
	Eventually(t, func() string {
		if left := Tagged(t, tag); len(left) > 0 {
			return fmt.Sprintf("processes %v still run", left)
		}
		return ""
	})
}

// Leftovers returns the temporary files of ours below a directory.
func Leftovers(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && strings.HasPrefix(e.Name(), ".toolhost-") {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return found
}

// unfinished returns what is left in a state directory of writes that are not under way any more. No host may run on
// it.
func unfinished(t *testing.T, state string) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{
		"journal/*.journal", "history/owners/*", "history/running/*", "history/rooms/*", "history/*/*~*", "readstate/*.tmp", "results/open/*", ".new-*", "cache/*.tmp",
	} {
		names, err := filepath.Glob(filepath.Join(state, pattern))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, names...)
	}
	return found
}
