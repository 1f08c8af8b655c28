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

// TestHowRulesAreHeld asks rules, check and doctor how rules on commands are held.
func TestHowRulesAreHeld(t *testing.T) {
	home := host.DoctorHome(t)
	all, _ := host.Doctor(t, home, "--deny", "Bash(rm:*)")
	late := host.About(all, "exec gate")[0].Level == "ok"
	if plain, _ := host.Doctor(t, home); len(host.About(plain, "exec gate")) != 0 {
		t.Errorf("without rules on commands the doctor tells of the gate: %+v", host.About(plain, "exec gate"))
	}
	out, code := host.RunCommand(t, home, "rules", "--json", "--deny", "Bash(rm:*)", "--deny", "Bash(cd:*)", "--deny", "Bash(kill:*)", "--deny", "Read(.env)", "--deny", "Write", "--allow", "Bash(make:*)")
	var list struct {
		Rules    []struct{ Rule, Held string }
		Warnings []string
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != 0 {
		t.Fatalf("%d %v: %s", code, err, out)
	}
	commands, files := "text", "host; commands are refused"
	if late {
		commands = "when programs start"
	}
	if host.Contained(t) {
		files = "kernel"
	}
	want := map[string]string{"Bash(rm:*)": commands, "Bash(cd:*)": "text", "Bash(kill:*)": commands, "Read(.env)": files, "Write": "host", "Bash(make:*)": ""}
	for _, r := range list.Rules {
		if held, known := want[r.Rule]; known && held != r.Held {
			t.Errorf("%s is held by %q, want %q", r.Rule, r.Held, held)
		}
		delete(want, r.Rule)
	}
	if len(want) != 0 || !strings.Contains(strings.Join(list.Warnings, "\n"), "Bash(cd:*) is about a builtin") {
		t.Errorf("not listed: %v; warnings %q", want, list.Warnings)
	}
	out, _ = host.RunCommand(t, home, "check", "Bash", `{"command":"$X y"}`, "--json", "--deny", "Bash(rm:*)")
	var verdict struct{ Action, Held string }
	if err := json.Unmarshal([]byte(out), &verdict); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if late && (verdict.Action != "allow" || verdict.Held != "when programs start") || !late && verdict.Action != "ask" {
		t.Errorf("$X y: %+v", verdict)
	}
}
