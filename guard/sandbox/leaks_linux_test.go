//go:build slow

package sandbox

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/toolhost/toolhost/integration/samples"
	"go.uber.org/goleak"
)

// Nothing of many commands is left: no process, descriptor, goroutine, mount.
func TestNoLeaks(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	f := newFixture(t)
	fds := openFiles(t)
	s, err := Start(context.Background(), f.policy(), Options{})
	if err != nil {
		t.Skip(err)
	}
	count := func() string {
		r := runIn(t, s, f.ws, f.env, "/bin/bash", "-c", "set -- /proc/[0-9]*; echo $#; wc -l < /proc/self/mountinfo")
		return r.output
	}
	before, inside, routines := count(), insideFiles(t, s), runtime.NumGoroutine()
	for i := range samples.Rounds(500) {
		p, err := s.Spawn(Spec{Argv: []string{"/bin/sh", "-c", "sleep 100 & exit 3"}, Dir: f.ws})
		if err != nil {
			t.Fatal(err)
		}
		if st, err := p.Wait(); st.ExitCode != 3 || err != nil {
			t.Fatalf("command %d: %+v, %v", i, st, err)
		}
		if _, err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Spawn(Spec{Argv: []string{"/no/such"}}); err == nil {
			t.Fatal("started")
		}
	}
	if after := count(); after != before {
		t.Errorf("processes and mounts: %q before, %q after", before, after)
	}
	if after := insideFiles(t, s); after > inside {
		t.Errorf("process 1 has %d descriptors, %d before", after, inside)
	}
	waitFor(t, "goroutines to end", func() bool { return runtime.NumGoroutine() <= routines })
	s.Close()
	if after := openFiles(t); after > fds { // fewer: the collector closed those of another test
		t.Errorf("%d descriptors after, %d before", after, fds)
	}
}

func openFiles(t testing.TB) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// insideFiles counts the descriptors of process 1, where that can be seen.
func insideFiles(t testing.TB, s *Sandbox) int {
	t.Helper()
	n, ok := s.engine.(*insideProcess)
	if !ok {
		return 0
	}
	names, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", n.cmd.Process.Pid))
	if err != nil {
		return 0 // not dumpable, and we are not root
	}
	return len(names)
}
