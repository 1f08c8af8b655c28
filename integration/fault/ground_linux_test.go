package fault

import (
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// The tests of this package break what a host stands on and look at what is left: no torn file, no acknowledged write lost, no process, no
// temporary file.

// A ground is a host.Ground that can tell whether it was left whole.
type ground struct{ *host.Ground }

func newGround(t *testing.T) *ground { return &ground{host.NewGround(t)} }

// start starts a host, which ends with the test if not before.
func (g *ground) start(s host.Setting, flags ...string) *session {
	g.T.Helper()
	return &session{g.Start(s, flags...)}
}

// A session is a host.Session with the calls of these tests.
type session struct{ *host.Session }
