package sandbox

import (
	"bufio"
	"os"
	"testing"

	"github.com/toolhost/toolhost/integration/samples"
)

// andWait ends a script that stays until it is killed.
const andWait = "\necho ready; read"

// spawnReady starts a bash that runs a script, and returns when that says ready.
func spawnReady(t *testing.T, s *Sandbox, f *fixture, script, d string) Process {
	t.Helper()
	in, hold, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	t.Cleanup(func() { hold.Close() })
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	p, err := s.Spawn(Spec{
		Argv: []string{"/bin/bash", "-c", script}, Dir: f.ws, Env: append(f.env, "D="+d), Files: []*os.File{in, w, w},
	})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Kill() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%s: %q, %v", script, line, err)
	}
	return p
}

// TestTryFinish: a command is ended if nothing descends from it, and else goes on.
func TestTryFinish(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	s := start1(t, f.policy())
	if s.Report().Backend != Namespaces {
		t.Skip("only commands in namespaces can be concluded")
	}
	for script, want := range map[string]bool{
		"":                                true,
		"/bin/true; (:)":                  true,
		"sleep $D &":                      false,
		"setsid sleep $D &":               false,
		"(setsid sleep $D > /dev/null &)": false,
		"$ATTACK detach $D":               false,
	} {
		t.Run(script, func(t *testing.T) {
			d := duration()
			p := spawnReady(t, s, f, script+andWait, d)
			if files, got := p.TryFinish(); got != want || got && files != 0 && files != 3 {
				t.Fatalf("TryFinish() = %d, %v", files, got)
			}
			ended, err := p.Kill()
			if err != nil || want && ended > 0 || !want && ended < 2 {
				t.Errorf("Kill() = %d, %v", ended, err)
			}
			if n := sleepers(t, d); n > 0 {
				t.Errorf("%d processes are left", n)
			}
			if status, err := p.Wait(); status.Signal != "SIGKILL" || err != nil {
				t.Errorf("Wait() = %+v, %v", status, err)
			}
		})
	}
}

// TestTryFinishAmongOthers: an orphan may be anybody's, and one command that runs
// is no one's.
func TestTryFinishAmongOthers(t *testing.T) {
	f := newFixture(t)
	s := start1(t, f.policy())
	if s.Report().Backend != Namespaces {
		t.Skip("only commands in namespaces can be concluded")
	}
	one, other := duration(), duration()
	spawnReady(t, s, f, "sleep $D &"+andWait, one)
	waitFor(t, "the child of the other command", func() bool { return sleepers(t, one) == 1 }) // bash goes on before it is one
	if _, ok := spawnReady(t, s, f, andWait, "").TryFinish(); !ok {
		t.Error("a command was not concluded because another has a child")
	}
	daemon := spawnReady(t, s, f, "(setsid sleep $D > /dev/null &)"+andWait, other)
	p := spawnReady(t, s, f, andWait, "")
	if _, ok := p.TryFinish(); ok {
		t.Error("a command was concluded although an orphan could have been its own")
	}
	if _, err := daemon.Kill(); err != nil {
		t.Error(err)
	}
	waitFor(t, "a command to be concluded when the orphan has gone", func() bool { _, ok := p.TryFinish(); return ok })
	if n := sleepers(t, one); n != 1 {
		t.Errorf("%d of the other command are left, want 1", n)
	}
}

// TestKillCounts: what dies with its process group counts as ended, however soon it
// is gone.
func TestKillCounts(t *testing.T) {
	f := newFixture(t)
	s := start1(t, f.policy())
	if s.Report().Backend != Namespaces {
		t.Skip("the processes of other backends are counted as they are found")
	}
	for range samples.Raced(20) {
		p := spawnReady(t, s, f, "for i in {1..30}; do sleep $D & done"+andWait, duration())
		if ended, err := p.Kill(); ended != 31 || err != nil {
			t.Fatalf("Kill() = %d, %v, want 31", ended, err)
		}
	}
}
