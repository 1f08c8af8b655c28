//go:build slow && linux

package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
	"golang.org/x/sys/unix"
)

// changesAll is a command with output that changes files of each kind.
const changesAll = "echo 4 > a; rm -r d; ln -sfn b l; mkdir n; echo 5 > n/f; chmod 700 x; echo done"

// TestFaultCheckpointKilled kills the host at each system call by which it runs a command and records what that changes. Each change is in an
// entry of the history, which can be taken back, and the next command tells of it.
func TestFaultCheckpointKilled(t *testing.T) {
	g := newGround(t)
	stations := 0
	for station := 1; station < mostStations; station += samples.Step(9) {
		before, known := g.fresh(), g.last()
		s, in := g.injected()
		s.covered()
		sandbox := host.Descendants(t, s.Cmd.Process.Pid)
		in.arm(station, false, append([]uintptr{unix.SYS_UNLINKAT, unix.SYS_SYMLINKAT}, changing...), func() syscall.Errno {
			_ = s.Cmd.Process.Kill()
			return 0
		}, g.WS, g.State)
		r, err := s.Call(s.Ctx, "Bash", host.Args{"command": changesAll}.String())
		acked := err == nil && !r.IsError
		hit := in.disarm() > 0
		_ = s.Close()
		gone(t, sandbox) // until then the command may go on
		now := g.stands()
		if acked || cmp.Diff(before, now) != "" {
			host.Eventually(t, func() string { // its owner may be taken for alive for a moment; see tidy
				if g.last() == known {
					return fmt.Sprintf("station %d: what a command changed is not in the history", station)
				}
				return ""
			})
		}
		if last := g.last(); last != known {
			g.rewind(last, before)
		}
		g.Tidy()
		if stations++; !hit || t.Failed() {
			break
		}
	}
	t.Logf("killed at %d stations", stations)
}

// TestFaultCheckpointFull lets each system call fail by which what a command changed is kept. Its result is given all the same; what it
// changed can be taken back, or the result says that it cannot.
func TestFaultCheckpointFull(t *testing.T) {
	for _, sticky := range []bool{false, true} {
		g := newGround(t)
		stations := 0
		for station := 1; station < mostStations; station += samples.Step(7) {
			before, known := g.fresh(), g.last()
			s, in := g.injected()
			s.covered()
			in.arm(station, sticky, changing, failing(unix.ENOSPC), filepath.Join(g.State, "history"))
			text, failed := s.Try("Bash", host.Args{"command": changesAll})
			hit := in.disarm() > 0
			s.End()
			last := g.last()
			switch {
			case failed || !strings.Contains(text, "done"):
				t.Errorf("station %d: failed %v: %s", station, failed, text)
			case last != known: // older ones may have made room
				g.rewind(last, before)
			case !strings.Contains(text, "cannot be taken back"):
				t.Errorf("station %d: not recorded, and that is not said: %s", station, text)
			}
			g.Tidy()
			if stations++; !hit || t.Failed() {
				break
			}
		}
		t.Logf("sticky %v: %d stations", sticky, stations)
	}
}

// TestFaultCheckpointDisk fills the disk of the state directory, and then runs commands.
func TestFaultCheckpointDisk(t *testing.T) {
	g := newGround(t)
	host.Must(t, os.MkdirAll(g.State, 0o700))
	host.Tmpfs(t, g.State, "size=2m")
	g.fresh()
	s := g.start(host.StdioModern)
	s.covered()
	filler := host.Fill(t, g.State, 0)
	text, failed := s.Try("Bash", host.Args{"command": changesAll})
	if failed || !strings.Contains(text, "done") || !strings.Contains(text, "cannot be taken back") &&
		!strings.Contains(text, "is not kept") {
		t.Errorf("failed %v: %s", failed, text)
	}
	if err := os.Remove(filler); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	before := g.fresh()
	s.MustCall("Bash", host.Args{"command": "true"})
	if text := s.MustCall("Bash", host.Args{"command": changesAll}); !strings.Contains(text, "changed 5 files") {
		t.Errorf("with room again: %s", text)
	}
	s.End()
	g.rewind(g.last(), before)
	g.Tidy()
}

// TestFaultCheckpointTemporary holds a Write of one host while its temporary file stands. A command of another host ends then, and one begins
// then. Neither made that file, nor removed it.
func TestFaultCheckpointTemporary(t *testing.T) {
	g := newGround(t)
	g.Put("a", "1\n")
	other := g.start(host.StdioModern)
	other.covered()
	begin := func(name string) (end func()) {
		ended := make(chan error, 1)
		go func() {
			_, err := other.Call(other.Ctx, "Bash", host.Args{"command": "touch begun-" + name +
				"; until test -e end-" + name + "; do sleep .01; done"}.String())
			ended <- err
		}()
		host.Eventually(t, func() string {
			if _, err := os.Lstat(g.Path("begun-" + name)); err != nil {
				return err.Error()
			}
			return ""
		})
		return func() {
			g.Put("end-"+name, "")
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
	s, in := g.injected()
	s.MustCall("Read", host.Args{"file_path": "a"})
	endFirst, endSecond := begin("first"), func() {}
	in.arm(1, false, []uintptr{unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2}, func() syscall.Errno {
		if names, _ := filepath.Glob(g.Path(".toolhost-*.tmp")); len(names) != 1 {
			t.Errorf("temporary files: %q", names)
		}
		endFirst()
		endSecond = begin("second")
		return 0
	}, g.WS)
	s.MustCall("Write", host.Args{"file_path": "a", "content": "2\n"})
	in.disarm()
	endSecond()
	s.End()
	other.End()
	names := map[string]bool{}
	for _, c := range g.history() {
		names[filepath.Base(c.Path)] = true
		if strings.HasPrefix(filepath.Base(c.Path), ".toolhost-") {
			t.Errorf("call %s has %s", c.ID, c.Path)
		}
	}
	if !names["begun-first"] || !names["begun-second"] {
		t.Errorf("the history has %v", names)
	}
}
