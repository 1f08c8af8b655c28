package sandbox

import (
	"os"
	"testing"
	"time"
)

// TestRecall: a trial in which all was held counts for a while for the same program with the same rights, and no longer once a sandbox
// could not be started.
func TestRecall(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	if _, known := recalled(); known {
		t.Fatal("known before the first trial")
	}
	tried := Probe(t.Context(), false)
	if tried.Backend != Namespaces || !tried.Enforces.all() {
		t.Skip("this machine does not hold everything: ", tried)
	}
	path, now := heldFile()
	is := func(want bool, when string) {
		t.Helper()
		if r, known := recalled(); known != want || known && r.String() != tried.String() {
			t.Errorf("%s: %v, known %t", when, r, known)
		}
	}
	is(true, "after a trial")
	old := time.Now().Add(-2 * recallTime)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	is(false, "later")
	for _, other := range []string{"", string(now[1:]), string(now) + "x"} {
		if err := os.WriteFile(path, []byte(other), 0o600); err != nil {
			t.Fatal(err)
		}
		is(false, "of another program")
	}
	remember(tried)
	is(true, "once more")
	_, _ = Start(t.Context(), Policy{Writable: []string{t.TempDir()}},
		Options{Backends: []Backend{"none of this system"}})
	is(false, "after a sandbox could not be started")
}
