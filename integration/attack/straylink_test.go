//go:build slow && unix

package attack

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// TestAttackStrayLink has commands make links by denied names: no link to a directory takes the root or the programs of the
// system away from the commands that follow, and one to a file goes on to hide that.
func TestAttackStrayLink(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	attackStrayLink(t, newWorld(t))
}

func attackStrayLink(t *testing.T, w *world) {
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(w.ws, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("plain.txt", "open\n")
	put("own.key", canaryKey+"\n")
	h := w.host(t, host.StdioModern, "--root", w.ws, "--deny", "Read(*.key)", "--deny", "Edit(*.lock)", "--deny",
		"Read(/kept)")
	bash := func(command string, args ...any) said {
		raw, err := json.Marshal(map[string]any{"command": fmt.Sprintf(command, args...)})
		if err != nil {
			t.Fatal(err)
		}
		return h.call(t, "Bash", string(raw), "link")
	}
	veiled := func(name string) string { // from what reads the text of a command, which would refuse it before it runs
		return "f=$(tr a-y b-z <<< " + strings.Map(func(r rune) rune {
			if r >= 'b' && r <= 'z' {
				return r - 1
			}
			return r
		}, name) + ")"
	}
	for _, to := range []string{".", "..", "/", "/usr", w.ws} {
		for _, name := range []string{"x.key", "x.lock", "kept"} {
			bash("%s; ln -s '%s' \"$f\"", veiled(name), to)
			if _, err := os.Lstat(filepath.Join(w.ws, name)); err != nil {
				t.Errorf("%s, which would lead to %s, was not made: %v", name, to, err)
			}
			said := bash("ls; cat plain.txt; echo x > written; %s; cat \"$f\"/own* *.??y; rm \"$f\"", veiled(name))
			if !strings.Contains(said.text, "open") || strings.Contains(said.text, "written: ") ||
				w.leaks(said.raw, "") != "" {
				t.Errorf("%s, which leads to %s: %s", name, to, said.text)
			}
			_ = os.Remove(filepath.Join(w.ws, name)) // where a rule keeps it
		}
	}
	bash("%s; ln -s plain.txt \"$f\"", veiled("y.key"))
	if said := bash("cat plain.txt"); said.ok {
		t.Errorf("a denied link to a file does not hide it: %s", said.text)
	}
	w.before = w.snapshot()
	w.end(t, h)
}
