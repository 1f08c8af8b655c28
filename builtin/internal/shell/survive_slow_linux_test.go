//go:build slow

package shell

import (
	"os"
	"testing"
	"time"
)

// TestNothingLeaks counts descriptors, goroutines (goleak in TestMain) and
// children after many calls.
func TestNothingLeaks(t *testing.T) {
	// A short grace: bash loses a SIGTERM that arrives between fork and exec.
	r := newRunner(t, Config{InheritPath: true, Limits: Limits{Head: 10, Tail: 10}, Grace: 20 * time.Millisecond})
	spill := spillTo(t)
	count := func() int {
		awaitWarm(t, r)
		names, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	run(t, r, Command{Text: "true"})
	before := count()
	for i := range 300 {
		switch i % 4 {
		case 0:
			run(t, r, Command{Text: "true"})
		case 1:
			run(t, r, Command{Text: "seq 100", Spill: spill})
		case 2:
			run(t, r, Command{Text: "sleep 100 &", Output: func(string) {}})
		case 3:
			run(t, r, Command{Text: "sleep 100", Timeout: time.Millisecond})
		}
	}
	after := count()
	for end := time.Now().Add(time.Minute); after > before && time.Now().Before(end); after = count() {
		time.Sleep(10 * time.Millisecond)
	}
	if after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}
