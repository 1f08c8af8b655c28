package fault

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// busy changes files of each kind all the time.
const busy = `for i in $(seq 400); do
	echo $i > a; mkdir -p n/$i; echo $i > n/$i/f; mv n/$i/f n/$i/g; ln -sfn $i l
	if [ -d d ]; then mv d e; rm -f e/b; else mv e d; fi
	chmod 7$((i%8))0 x
done`

// TestFaultCommandKilled kills the host at a random moment of a command or a background task. All that it changed is in the history: the
// rewind leads back to what stood there.
func TestFaultCommandKilled(t *testing.T) {
	g := newGround(t)
	for round := range samples.Rounds(samples.Rounds(12)) {
		before, known := g.fresh(), g.last()
		s := g.start(host.StdioModern)
		s.covered()
		sandbox := host.Descendants(t, s.Cmd.Process.Pid)
		_, err := s.Start(s.Ctx, "Bash", host.Args{"command": busy, "run_in_background": round%3 == 2}.String(),
			host.Conversation("c"))
		host.Must(t, err)
		<-time.After(time.Duration(rand.IntN(400)) * time.Millisecond)
		host.Must(t, s.Cmd.Process.Kill())
		_ = s.Close()
		gone(t, sandbox) // until then the command may go on
		now := g.stands()
		if cmp.Diff(before, now) != "" {
			host.Eventually(t, func() string {
				if g.last() == known {
					return "what a killed command changed is not in the history"
				}
				return ""
			})
			g.rewind(g.last(), before)
		}
		g.Tidy()
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
}
