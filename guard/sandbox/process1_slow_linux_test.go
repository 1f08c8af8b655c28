//go:build slow

package sandbox

import (
	"os"
	"strings"
	"testing"
)

// Nor do more signals than can be handled, at any moment, keep it from starting and
// ending commands, which do not inherit what it does about signals.
func TestProcessOneIsNotOccupied(t *testing.T) {
	f := newFixture(t)
	s := start1(t, f.policy())
	if s.Report().Backend != Namespaces {
		t.Skip("no namespaces here")
	}
	p, err := s.Spawn(Spec{Argv: []string{os.Args[0], attackArg, "deafen", "1"}, Env: f.env})
	if err != nil {
		t.Fatal(err)
	}
	commands := 200
	if testing.Short() {
		commands = 50
	}
	for i := range commands {
		r, err := tryIn(s, f.ws, f.env, "/bin/cat", "/proc/self/status")
		if err != nil {
			t.Fatalf("command %d: %v", i, err)
		}
		for _, set := range []string{"SigBlk", "SigIgn", "SigCgt"} {
			if !strings.Contains(r.output, set+":\t0000000000000000\n") {
				t.Fatalf("command %d does not begin with an empty %s:\n%s", i, set, r.output)
			}
		}
	}
	if n, err := p.Kill(); n != 1 || err != nil {
		t.Errorf("Kill() = %d, %v", n, err)
	}
}
