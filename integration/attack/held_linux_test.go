package attack

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/testenv"
)

// TestHowRulesAreHeld asks rules, check and doctor how rules on commands are held.
func TestHowRulesAreHeld(t *testing.T) {
	testenv.NeedsNamespaces(t)
	home := host.DoctorHome(t)
	all, _ := host.Doctor(t, home, "--quick", "--deny", "Bash(rm:*)")
	late := host.About(all, "exec gate")[0].Level == "ok"
	if plain, _ := host.Doctor(t, home, "--quick"); len(host.About(plain, "exec gate")) != 0 {
		t.Errorf("without rules on commands the doctor tells of the gate: %+v", host.About(plain, "exec gate"))
	}
	out, code := host.RunCommand(t, home, "rules", "--json", "--deny", "Bash(rm:*)", "--deny", "Bash(cd:*)", "--deny",
		"Bash(kill:*)", "--deny", "Read(.env)", "--deny", "Write", "--allow", "Bash(make:*)")
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
	want := map[string]string{"Bash(rm:*)": commands, "Bash(cd:*)": "text", "Bash(kill:*)": commands,
		"Read(.env)": files, "Write": "host", "Bash(make:*)": ""}
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
	if late && (verdict.Action != "allow" || verdict.Held != "when programs start") || !late &&
		verdict.Action != "ask" {
		t.Errorf("$X y: %+v", verdict)
	}
}
