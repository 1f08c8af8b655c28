//go:build linux

package integration

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
	"golang.org/x/sys/unix"
)

// changesAll is a command with output that changes files of each kind.
const changesAll = "echo 4 > a; rm -r d; ln -sfn b l; mkdir n; echo 5 > n/f; chmod 700 x; echo done"

// fresh puts the files there that changesAll changes, and returns what stands there.
func (g *ground) fresh() map[string]string {
	g.t.Helper()
	entries, err := os.ReadDir(g.ws)
	must(g.t, err)
	for _, e := range entries {
		must(g.t, os.RemoveAll(g.path(e.Name())))
	}
	g.put("a", "1\n")
	g.put("d/b", "2\n")
	g.put("x", "3\n")
	must(g.t, os.Symlink("a", g.path("l")))
	return g.stands()
}

// last is the ID of the last call in the history.
func (g *ground) last() string {
	if ids := g.ids(); len(ids) > 0 {
		return ids[len(ids)-1]
	}
	return ""
}

// covered waits until the base has been read.
func (s *session) covered() {
	s.t.Helper()
	for strings.Contains(s.call("Bash", args{"command": "true"}), "had been read") {
	}
}

// TestFaultCheckpointKilled kills the host at each system call by which it runs a command and records what that changes. The history can be
// read, a call that it holds can be taken back, and the next command says if what the one before changed may not be in it.
func TestFaultCheckpointKilled(t *testing.T) {
	g := newGround(t)
	stations := 0
	for station := 1; station < mostStations; station += often(9, 1) {
		before, known := g.fresh(), g.last()
		s, in := g.injected()
		s.covered()
		in.arm(station, false, append([]uintptr{unix.SYS_UNLINKAT, unix.SYS_SYMLINKAT}, changing...), func() syscall.Errno {
			_ = s.cmd.Process.Kill()
			return 0
		}, g.ws, g.state)
		r, err := s.Call(s.ctx, "Bash", args{"command": changesAll}.String())
		acked := err == nil && !r.IsError
		hit := in.disarm() > 0
		_ = s.Close()
		now, last := g.stands(), g.last()
		if acked && last == known {
			t.Errorf("station %d: what an answered command changed is not in the history", station)
		}
		if last == known && cmp.Diff(before, now) != "" {
			eventually(t, func() string { // its owner may be taken for alive for a moment; see tidy
				next := g.start(stdioModern)
				defer next.end()
				if text := next.call("Bash", args{"command": "true"}); !strings.Contains(text, `The host was killed while it ran "echo 4`) {
					return fmt.Sprintf("station %d: it is not said that changes are not covered: %s", station, text)
				}
				return ""
			})
		}
		if last != known {
			g.rewind(last, before)
		}
		g.tidy()
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
		for station := 1; station < mostStations; station += often(7, 1) {
			before, known := g.fresh(), g.last()
			s, in := g.injected()
			s.covered()
			in.arm(station, sticky, changing, failing(unix.ENOSPC), filepath.Join(g.state, "history"), filepath.Join(g.state, "checkpoints"))
			text, failed := s.try("Bash", args{"command": changesAll})
			hit := in.disarm() > 0
			s.end()
			last := g.last()
			switch {
			case failed || !strings.Contains(text, "done"):
				t.Errorf("station %d: failed %v: %s", station, failed, text)
			case last != known: // older ones may have made room
				g.rewind(last, before)
			case !strings.Contains(text, "cannot be taken back"):
				t.Errorf("station %d: not recorded, and that is not said: %s", station, text)
			}
			g.tidy()
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
	must(t, os.MkdirAll(g.state, 0o700))
	tmpfs(t, g.state, "size=2m")
	g.fresh()
	s := g.start(stdioModern)
	s.covered()
	filler := fill(t, g.state, 0)
	text, failed := s.try("Bash", args{"command": changesAll})
	if failed || !strings.Contains(text, "done") || !strings.Contains(text, "cannot be taken back") && !strings.Contains(text, "is not kept") {
		t.Errorf("failed %v: %s", failed, text)
	}
	if err := os.Remove(filler); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	before := g.fresh()
	s.call("Bash", args{"command": "true"})
	if text := s.call("Bash", args{"command": changesAll}); !strings.Contains(text, "changed 5 files") {
		t.Errorf("with room again: %s", text)
	}
	s.end()
	g.rewind(g.last(), before)
	g.tidy()
}
