//go:build slow

package sandbox

import (
	"testing"
)

// TestTryFinishWhileItForks: a command that starts one process after the other cannot
// slip one through.
func TestTryFinishWhileItForks(t *testing.T) {
	f := newFixture(t)
	s := start1(t, f.policy())
	if s.Report().Backend != Namespaces {
		t.Skip("only commands in namespaces can be concluded")
	}
	for range 20 {
		d := "0.00" + duration()
		p := spawnReady(t, s, f, "echo ready; while :; do sleep $D; done", d)
		for over := false; !over; {
			if _, over = p.TryFinish(); over {
				break
			}
			select {
			case <-p.Done(): // it forked once more before it was killed
				if _, err := p.Kill(); err != nil {
					t.Error(err)
				}
				over = true
			default:
			}
		}
		if n := sleepers(t, d); n > 0 {
			t.Errorf("%d processes are left", n)
		}
	}
}
