//go:build slow

package sandbox

import (
	"net"
	"strconv"
	"strings"
	"testing"
)

// Rules allow a service by its port, also by the proxy; "*" does not. Services that give the machine are never reached.
func TestLocalServicesByRule(t *testing.T) {
	t.Parallel()
	port := loopbackServer(t)
	for _, c := range []struct {
		allowed, denied string
		reached         bool
	}{
		{"localhost:" + port, "", true}, {"localhost", "", true}, {"localhost:1", "", false}, {"*", "", false}, {"localhost:" + port, "localhost", false},
	} {
		f := newFixture(t)
		p := f.policy()
		p.Network.AllowedDomains = []string{c.allowed}
		if c.denied != "" {
			p.Network.DeniedDomains = []string{c.denied}
		}
		s, err := Start(t.Context(), p, Options{Backends: []Backend{Namespaces}})
		if err != nil {
			t.Skip(err)
		}
		defer s.Close()
		if s.outside == nil {
			t.Skip(s.Report())
		}
		for _, script := range []string{"cat </dev/tcp/127.0.0.1/" + port, "curl -sS --http0.9 --noproxy '' -x " +
			s.proxy.Env()[0][len("HTTP_PROXY="):] + " telnet://localhost:" + port + " </dev/null"} {
			r := runIn(t, s, f.ws, f.env, "bash", "-c", script)
			if strings.Contains(r.output, "the host") != c.reached {
				t.Errorf("allowed %q, denied %q: %s: output\n%s", c.allowed, c.denied, script, r.output)
			}
		}
	}
	for control := range controls() {
		if open, why := hostService(control, ""); open && why == "" {
			t.Errorf("port %d is reached", control)
		}
	}
	records := t.TempDir()
	number, _ := strconv.Atoi(port)
	if err := RecordPort(records, &net.TCPAddr{Port: number}); err != nil {
		t.Fatal(err)
	}
	if open, why := hostService(number, records); !open || why == "" {
		t.Error("the port of another toolhost is reached")
	}
}
