package shell

import (
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/integration/testenv"
)

// TestAttended: a command is the same whether a thread waits for it, for how long, and
// whether one does already.
func TestAttended(t *testing.T) {
	testenv.NotShort(t, "runs many commands")
	start, count := startConcluding()
	r := newRunner(t, Config{InheritPath: true, Start: start})
	for text, want := range map[string]string{
		"x='" + strings.Repeat("0123456789abcde\n", 1<<16) + "'; echo ${#x}": "1048576\n", // more than the socket holds
		"echo one; sleep 0.02; echo two; sleep 0.02; echo three":             "one\ntwo\nthree\n",
		"for i in {1..400}; do echo $i; done | tail -n 1":                    "400\n",
		"printf 'no newline'":                  "no newline",
		"exec >&- 2>&-":                        "",
		"exec >&- 2>&-; sleep 0.02":            "",
		"echo said; exec >&- 2>&-; kill -9 $$": "said\n",
		"echo said; exec sleep 0.02":           "said\n",
		"echo said; exec true":                 "said\n",
	} {
		var together sync.WaitGroup
		for range 3 {
			together.Go(func() {
				if got := run(t, r, Command{Text: text}); got.Text != want {
					t.Errorf("%.40q: got %q, want %q", text, got.Text, want)
				}
			})
		}
		together.Wait()
	}
	if count.Load() == 0 {
		t.Error("no shell was concluded")
	}
}
