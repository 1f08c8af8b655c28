package builtin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/guard/sandbox/connectgate"
	"github.com/toolhost/toolhost/guard/settings"
)

// hostAsking is a gate whose hosts a person is asked about, and a function that connects.
func hostAsking(t *testing.T) (*execGate, *person, func(ctx context.Context, host string) <-chan string) {
	g, p := asking(t, settings.ModeAcceptEdits)
	g.Hosts = true
	return g, p, func(ctx context.Context, host string) <-chan string {
		said := make(chan string, 1)
		go func() {
			allowed, why := g.Connect(ctx, connectgate.Connection{Host: host, Port: "443", Chain: []string{"npm", "node"}})
			said <- fmt.Sprint(allowed, why)
		}()
		return said
	}
}

func TestHostGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, p, connect := hostAsking(t)
		first, second := connect(t.Context(), "a.test"), connect(t.Context(), "a.test")
		other := connect(t.Context(), "b.test")
		synctest.Wait()
		if len(p.asked) != 1 {
			t.Fatalf("asked %q at once", p.asked)
		}
		answers := map[string]ExecAnswer{"a.test:443": {Allowed: true, By: "console"},
			"b.test:443": {By: "console", Reason: "not that one"}}
		for i := range 2 {
			p.answers <- answers[p.asked[i]]
			synctest.Wait()
		}
		const refused = "falsea person refused it for this call: not that one"
		if a, b, c := <-first, <-second, <-other; a != "true" || b != "true" || c != refused {
			t.Errorf("got %s, %s, %s", a, b, c)
		}
		// The next try, also of a program that has given up.
		if a, b := <-connect(t.Context(), "a.test"), <-connect(t.Context(), "b.test"); a != "true" || b != refused ||
			len(p.asked) != 2 {
			t.Errorf("got %s, %s, asked %q", a, b, p.asked)
		}
		want := []string{"Allowed by a person: connect to a.test:443 (npm → node → connect to a.test:443): for this call, if the program tries again, too."}
		if got := g.lines(); !slices.Equal(got, want) {
			t.Errorf("lines %q", got)
		}
		if v := g.Judge(t.Context(), attempt(1, "git push granted")); !v.Allow {
			t.Error("a refused host refuses programs")
		}
	})
}

// What no person answers is refused after a time, a few times; then without a question. The command goes on.
func TestHostGateUnheard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, p, connect := hostAsking(t)
		for i := range 5 {
			if got := <-connect(t.Context(), fmt.Sprintf("h%d.test", i)); got != "false" {
				t.Error(got)
			}
		}
		if len(p.asked) != maxUnheard || g.Held() != maxUnheard*hostWait || len(g.lines()) != 0 {
			t.Errorf("asked %q, held %s, lines %q", p.asked, g.Held(), g.lines())
		}
		select {
		case <-g.Spent():
			t.Error("the command is ended")
		default:
		}
	})
}

func TestHostGateIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p, connect := hostAsking(t)
		go func() {
			for {
				select {
				case p.answers <- ExecAnswer{Allowed: true, By: "console"}:
				case <-t.Context().Done():
					return
				}
			}
		}()
		var all []<-chan string
		for i := range 3 * maxHostQuestions {
			all = append(all, connect(t.Context(), fmt.Sprintf("h%d.test", i)))
		}
		allowed := 0
		for _, said := range all {
			if <-said == "true" {
				allowed++
			}
		}
		if len(p.asked) != maxHostQuestions || allowed != maxHostQuestions {
			t.Errorf("asked %q, allowed %d", p.asked, allowed)
		}
	})
}

// A question ends with its command. Without a person none is asked.
func TestHostGateWithoutAnybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, p, connect := hostAsking(t)
		ctx, cancel := context.WithCancel(t.Context())
		said := connect(ctx, "a.test")
		synctest.Wait()
		cancel()
		synctest.Wait()
		if got := <-said; got != "false" || p.open != 0 || len(g.questions) != 0 || len(p.asked) != 1 {
			t.Errorf("%s, %d questions are open", got, p.open)
		}
		began := time.Now()
		g.Hosts = false // as in the mode dontAsk
		if got := <-connect(t.Context(), "b.test"); got != "false" {
			t.Error(got)
		}
		g.Hosts, g.Ask = true, func(context.Context, ExecQuestion) ExecAnswer {
			return ExecAnswer{Reason: "this client cannot ask one"}
		}
		if got := <-connect(t.Context(), "b.test"); got != "false" || strings.Join(p.asked, "") != "a.test:443" ||
			time.Since(began) > 0 {
			t.Errorf("%s, asked %q, after %s", got, p.asked, time.Since(began))
		}
	})
}
