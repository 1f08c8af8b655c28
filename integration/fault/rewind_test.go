//go:build slow && linux

package fault

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
	"golang.org/x/sys/unix"
)

// TestFaultRewindStations kills a rewind at each of its system calls that change files. Each path holds what stood there before or after the
// rewind, or nothing; the same rewind again ends it, and an undo leads back.
func TestFaultRewindStations(t *testing.T) {
	g := newGround(t)
	g.Put("a", "1\n")
	g.Put("d/b", "2\n")
	g.Put("d/e/c", "3\n")
	host.Must(t, os.Symlink("a", g.Path("l")))
	before := g.stands()
	s := g.start(host.StdioModern)
	s.MustCall("Bash", host.Args{"command": "echo 4 > a; rm -r d; ln -sfn b l; mkdir n; echo 5 > n/f; echo 6 > d"})
	s.End()
	after := g.stands()
	id := g.ids()[0]
	kept := filepath.Join(host.TempDir(t), "kept")
	sh := func(script string) {
		if out, err := exec.Command("sh", "-ec", script, "sh", g.WS, g.State, kept).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	sh(`mkdir "$3"; cp -a "$1" "$3/ws"; cp -a "$2" "$3/state"`)
	stations, step := 0, samples.Step(9)
	for station := 1; station < mostStations && g.killRewind(station, id, before, after); station += step {
		stations++
		g.rewind(id, before)
		if ids := g.ids(); len(ids) > 1 { // else it was killed after its last step
			g.rewind(ids[1], after)
		}
		g.Tidy()
		if t.Failed() {
			t.Fatalf("station %d", station)
		}
		sh(`rm -r "$1" "$2"; cp -a "$3/ws" "$1"; cp -a "$3/state" "$2"`)
	}
	t.Logf("killed at %d stations", stations)
}

// usable is a directory while it is restored. It gets its mode last.
const usable = `drwx------ ""`

// killRewind kills a rewind at a station. False: the rewind has fewer.
func (g *ground) killRewind(station int, id string, before, after map[string]string) bool {
	g.T.Helper()
	cmd := exec.Command(host.Binary, "rewind", id, "--yes", "--state-dir", g.State)
	cmd.Dir, cmd.Env = g.WS, host.CleanEnv(g.Home)
	var out host.LockedBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	in, started := g.inject(cmd)
	in.arm(station, false, append([]uintptr{unix.SYS_UNLINKAT, unix.SYS_SYMLINKAT}, changing...), func() syscall.Errno {
		_ = cmd.Process.Kill()
		return 0
	}, g.WS, g.State)
	host.Must(g.T, cmd.Start())
	if err := started(); err != nil {
		g.T.Skipf("system calls cannot be intercepted here: %v %s", err, &out)
	}
	err := cmd.Wait()
	hit := in.disarm() > 0
	now := g.stands()
	if !hit && err != nil {
		g.T.Errorf("%v\n%s", err, &out)
	}
	if diff := cmp.Diff(before, now); err == nil && diff != "" {
		g.T.Errorf("station %d: the rewind reports no error (-before +rewound)\n%s%s", station, diff, &out)
	}
	for path, what := range now {
		if what != before[path] && what != after[path] && what != usable {
			g.T.Errorf("station %d: %s is %s", station, path, what)
		}
	}
	return hit
}
