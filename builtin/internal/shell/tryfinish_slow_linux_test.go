//go:build slow

package shell

import (
	"testing"
)

// TestFinishedLeavesNothing: what a command had open is closed when the next one
// begins, although its result does not wait for that.
func TestFinishedLeavesNothing(t *testing.T) {
	start, _ := startConcluding()
	r := newRunner(t, Config{InheritPath: true, Start: start})
	dir := t.TempDir()
	for range 50 {
		if got := run(t, r, Command{Text: "exec 9>lock; flock -n 9 || echo held", Dir: dir}); got.Text != "" {
			t.Fatalf("got %q", got.Text)
		}
	}
}
