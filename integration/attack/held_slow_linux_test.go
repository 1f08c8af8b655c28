//go:build slow

package attack

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// TestHeldWhenProgramsStart runs every way of guard/testdata/held.txt to start a denied program that the text of a command does
// not tell, and looks at the disk. It says nothing where no exec gate works.
func TestHeldWhenProgramsStart(t *testing.T) {
	t.Parallel()
	home := host.DoctorHome(t)
	all, _ := host.Doctor(t, home, "--deny", "Bash(rm:*)")
	gate := host.About(all, "exec gate")
	if len(gate) != 1 {
		t.Fatalf("the doctor says of the exec gate: %+v", gate)
	}
	if gate[0].Level != "ok" {
		t.Skip("no exec gate works here: " + gate[0].Text)
	}
	raw, err := os.ReadFile("../../guard/testdata/held.txt")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	h := w.host(t, host.StdioModern, "--root", w.ws, "--deny", "Bash(rm:*)")
	keep := filepath.Join(w.ws, "keep.txt")
	rows := 0
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		if text, err := strconv.Unquote(line); line[0] == '"' && err == nil {
			line = text
		}
		args, err := json.Marshal(map[string]any{"command": line, "timeout": 5000})
		if err != nil {
			t.Fatal(err)
		}
		h.call(t, "Bash", string(args), "held-"+strconv.Itoa(rows))
		if rows++; !exists(keep) {
			t.Errorf("%s: rm has run", line)
			host.Must(t, os.WriteFile(keep, []byte("keep\n"), 0o644))
		}
	}
	if rows < 100 {
		t.Errorf("only %d ways", rows)
	}
	if err := h.Stop(); err != nil {
		t.Error(err)
	}
}
