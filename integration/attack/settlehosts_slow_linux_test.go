//go:build slow

package attack

import (
	"fmt"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// TestSettleTwoHosts has servers and commands of two hosts change protected files of one workspace at once: nothing of
// that stands, and what a person changes between stays.
func TestSettleTwoHosts(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	g := newLeftoverGround(t, 0)
	g.must(t, g.ws, "mkdir .vscode; echo '{}' > .vscode/tasks.json")
	var plants []string
	for i, plant := range samples.Of(serverPlants[:5], 1) {
		plants = append(plants, fmt.Sprintf("bash %s/%d.sh > /dev/null 2>&1; true", g.root, i))
		host.MustWrite(t, fmt.Sprintf("%s/%d.sh", g.root, i), plant.bash)
	}
	hosts := []*host.Session{g.startServed(t, ""), g.startServed(t, "")}
	for _, person := range []string{"{}", `{"person":1}`} {
		g.must(t, g.ws, "echo '"+person+"' > .vscode/tasks.json")
		before := g.must(t, g.ws, plantsLook)
		var calls sync.WaitGroup
		for _, s := range hosts {
			for _, plant := range plants {
				calls.Go(func() { s.MustCall("mcp__s__sh", host.Args{"text": plant}) })
				calls.Go(func() { s.MustCall("Bash", host.Args{"command": plant}) })
			}
		}
		calls.Wait()
		g.settled(t)
		if now := g.must(t, g.ws, plantsLook); now != before {
			t.Errorf("outside stands\n%s\nnot\n%s", now, before)
		}
		for _, s := range hosts {
			s.MustCall("Bash", host.Args{"command": "rm -rf .claude new d x x.json; true"})
		}
		g.settled(t)
	}
	for _, s := range hosts {
		s.End()
	}
}
