package sandboxpool

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestIdle: a sandbox in which nothing runs goes when it has been idle for long, or when there are too many; one in
// use stays.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cs := New(nil, nil, "")
		add := func(name string, users int) {
			cs.open[name] = &Sandbox{used: time.Now(), users: users}
		}
		tidy := func(mine string) {
			for other := cs.stale(mine); other != ""; other = cs.stale(mine) {
				delete(cs.open, other)
			}
		}
		add("busy", 1)
		add("old", 0)
		time.Sleep(sandboxIdle - time.Minute) // of the bubble's clock
		add("young", 0)
		tidy("young")
		if len(cs.open) != 3 {
			t.Fatalf("%d sandboxes", len(cs.open))
		}
		time.Sleep(time.Minute)
		tidy("young")
		if cs.open["old"] != nil || cs.open["busy"] == nil || cs.open["young"] == nil {
			t.Errorf("left are %v", cs.open)
		}
		for i := range maxSandboxes + 1 {
			time.Sleep(time.Second)
			add(fmt.Sprint(i), 0)
			tidy(fmt.Sprint(i))
		}
		if len(cs.open) != maxSandboxes || cs.open["busy"] == nil || cs.open["young"] != nil {
			t.Errorf("%d sandboxes", len(cs.open))
		}
	})
}
