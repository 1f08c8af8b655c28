//go:build linux

package integration

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/integration/client"
)

// TestOrder pipelines appends: those of one conversation arrive in their order, whatever the others of the connection do.
func TestOrder(t *testing.T) {
	const appends = 80
	g := newGround(t)
	var clients sync.WaitGroup
	for _, era := range []client.Era{client.Modern, client.Legacy} {
		s := g.start(setting{"stdio", era})
		for i := range 2 {
			clients.Go(func() {
				name := fmt.Sprintf("order-%s-%d", era, i)
				var all []*client.Pending
				for n := range appends {
					p, err := s.Start(s.ctx, "Bash", args{"command": fmt.Sprintf("echo %d >>%s", n, name)}.String(), conversation(name))
					if err != nil {
						t.Error(err)
						return
					}
					all = append(all, p)
				}
				want := ""
				for n, p := range all {
					if r, err := p.Result(s.ctx); err != nil || r.IsError {
						t.Errorf("append %d: %v, %v", n, r, err)
						return
					}
					want += fmt.Sprintln(n)
				}
				if got := get(t, g.path(name)); got != want {
					t.Errorf("%s: %q", name, got)
				}
			})
		}
	}
	clients.Wait()
}

// TestPing asks whether the host is there while 200 calls wait for one.
func TestPing(t *testing.T) {
	g := newGround(t)
	s := g.start(setting{"stdio", client.Legacy})
	var all []*client.Pending
	for n := range 200 {
		command := fmt.Sprintf("echo %d", n)
		if n == 0 {
			command = "until [ -e go ]; do sleep 0.01; done; echo 0"
		}
		p, err := s.Start(s.ctx, "Bash", args{"command": command}.String(), nil)
		must(t, err)
		all = append(all, p)
	}
	for range 20 {
		if _, err := s.Request(s.ctx, "ping", nil); err != nil {
			t.Fatal(err)
		}
	}
	g.put("go", "")
	for n, p := range all {
		if r, err := p.Result(s.ctx); err != nil || strings.TrimSpace(r.Text()) != fmt.Sprint(n) {
			t.Fatalf("call %d: %v, %v", n, r, err)
		}
	}
	s.end()
}
