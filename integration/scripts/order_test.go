//go:build linux

package scripts

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
	"github.com/toolhost/toolhost/integration/testenv"
)

// TestOrder pipelines appends: those of one conversation arrive in their order, whatever the others of the connection do.
func TestOrder(t *testing.T) {
	appends := samples.Rounds(80)
	g := host.NewGround(t)
	var clients sync.WaitGroup
	for _, era := range samples.Of([]client.Era{client.Modern, client.Legacy}, 1) {
		s := g.Start(host.Setting{Transport: "stdio", Era: era})
		for i := range 2 {
			clients.Go(func() {
				name := fmt.Sprintf("order-%s-%d", era, i)
				var all []*client.Pending
				for n := range appends {
					p, err := s.Start(s.Ctx, "Bash",
						host.Args{"command": fmt.Sprintf("echo %d >>%s", n, name)}.String(), host.Conversation(name))
					if err != nil {
						t.Error(err)
						return
					}
					all = append(all, p)
				}
				want := ""
				for n, p := range all {
					if r, err := p.Result(s.Ctx); err != nil || r.IsError {
						t.Errorf("append %d: %v, %v", n, r, err)
						return
					}
					want += fmt.Sprintln(n)
				}
				if got := host.Get(t, g.Path(name)); got != want {
					t.Errorf("%s: %q", name, got)
				}
			})
		}
	}
	clients.Wait()
}

// TestPing asks whether the host is there while many calls wait for one.
func TestPing(t *testing.T) {
	testenv.NeedsNamespaces(t)
	g := host.NewGround(t)
	s := g.Start(host.StdioLegacy)
	var all []*client.Pending
	for n := range samples.Rounds(200) {
		command := fmt.Sprintf("echo %d", n)
		if n == 0 {
			command = "until [ -e go ]; do sleep 0.01; done; echo 0"
		}
		p, err := s.Start(s.Ctx, "Bash", host.Args{"command": command}.String(), nil)
		host.Must(t, err)
		all = append(all, p)
	}
	for range 20 {
		if _, err := s.Request(s.Ctx, "ping", nil); err != nil {
			t.Fatal(err)
		}
	}
	g.Put("go", "")
	for n, p := range all {
		if r, err := p.Result(s.Ctx); err != nil || strings.TrimSpace(r.Text()) != fmt.Sprint(n) {
			t.Fatalf("call %d: %v, %v", n, r, err)
		}
	}
	s.End()
}
