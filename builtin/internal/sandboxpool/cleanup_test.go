package sandboxpool

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// TestRefusals: each command is told what was refused since it began, by whichever it was, and nothing twice.
func TestRefusals(t *testing.T) {
	var r refusals
	since := func(from int, fresh ...string) string {
		notes, _ := r.since(from, fresh)
		return strings.Join(notes, " ")
	}
	_, task := r.since(math.MaxInt, []string{"early"})
	_, call := r.since(math.MaxInt, []string{"a"})
	if got := since(call, "b", "b"); got != "b" {
		t.Errorf("the call is told %q", got)
	}
	if got := since(call + 2); got != "" {
		t.Errorf("the next call is told %q", got)
	}
	if got := since(task, "a"); got != "a b" {
		t.Errorf("the task is told %q", got)
	}
	for i := range 2 * maxRefusals {
		since(math.MaxInt, fmt.Sprint(i))
	}
	if got, _ := r.since(task, nil); len(got) != maxRefusals || got[maxRefusals-1] != fmt.Sprint(2*maxRefusals-1) {
		t.Errorf("%d are kept, the last %q", len(got), got[len(got)-1])
	}
}

func TestRefusal(t *testing.T) {
	for why, want := range map[string]string{
		"it is not in sandbox.network.allowedDomains":   "it is not in sandbox.network.allowedDomains. A person can add it: toolhost allow-host h",
		"it is denied by sandbox.network.deniedDomains": "it is denied by sandbox.network.deniedDomains, which only a person can change.",
		"it has no address":                             "it has no address.",
		"its address ::1 is not a public one: a person can add that address to sandbox.network.allowedDomains": "its address ::1 is not a public one: a person can add that address to sandbox.network.allowedDomains.",
	} {
		if got := refusal("h:80", "", why); got != "The sandbox refused the host h:80: "+want {
			t.Errorf("got %q", got)
		}
	}
}
