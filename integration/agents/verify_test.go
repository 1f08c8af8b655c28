package agents

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// verify runs toolhost verify; the report is one member a line, without the length of our part, and with "all" for a list of all our
// tools. The exit status must be what it says.
func (p person) verify(t *testing.T, env []string, args ...string) (report []byte, problem string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), host.Binary, append([]string{"verify", "--json"}, args...)...)
	cmd.Dir, cmd.Env = p.Project, append(host.CleanEnv(p.Home), env...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		problem = string(exit.Stderr)
	}
	var v map[string]any
	if err := json.Unmarshal(out, &v); err != nil {
		t.Fatalf("%v: %s\n%s", err, out, problem)
	}
	if v["ok"] != (err == nil) {
		t.Errorf("ok is %v, and the command ended with %v", v["ok"], err)
	}
	delete(v, "bytes")
	offered := v["offered"].(map[string]any)
	switch ours, deferred, missing := offered["ours"].([]any), v["deferred"].([]any), v["missing"].([]any); {
	case len(deferred)+len(missing) == 0 && len(ours) > 0:
		offered["ours"] = "all"
	case len(ours)+len(missing) == 0 && len(deferred) > 0:
		v["deferred"] = "all"
	}
	report, err = json.MarshalIndent(v, "", "  ")
	host.Must(t, err)
	return append(report, '\n'), problem
}

// TestVerifyRefuses: what cannot be verified is said, with its exit status.
func TestVerifyRefuses(t *testing.T) {
	for _, tt := range []struct {
		args, want string
		code       int
	}{
		{"verify", "takes CLIENT, such as: toolhost verify claude-code", 2},
		{"verify claud-code", `did you mean "claude-code"?`, 2},
		{"verify zed", "Zed: it cannot be verified", 3},
		{"verify crush", "Crush: it cannot be verified: toolhost has not been taught how", 3},
		{"verify kiro", "Kiro: it cannot be verified: its model is reached through an account", 3},
		{"verify cursor --json", "Cursor: it cannot be verified", 3},
		{"verify codex", "Codex is not installed here: there is no program codex on the PATH", 1},
		{"install claude-code --replace --project", "exclude each other", 2},
	} {
		p := newPerson(t)
		cmd := exec.CommandContext(t.Context(), host.Binary, strings.Fields(tt.args)...)
		cmd.Dir, cmd.Env = p.Project, append(host.CleanEnv(p.Home), "PATH="+p.Home)
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != tt.code || !strings.Contains(string(out), tt.want) {
			t.Errorf("%s: exit status %d, want %d, and %s", tt.args, got, tt.code, out)
		}
	}
}

// TestReplaceCommand switches Claude Code's own tools off and on again, as a person does.
func TestReplaceCommand(t *testing.T) {
	p := newPerson(t)
	file := filepath.Join(p.Home, ".claude", "settings.json")
	before := "{\n\t\"permissions\": {\n\t\t\"deny\": [\"Read\"]\n\t}\n}"
	host.Must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	host.Must(t, os.WriteFile(file, []byte(before), 0o600))
	for _, tt := range []struct {
		args string
		want []string
	}{
		{"install claude-code --replace --dry-run", []string{"its own tools would be switched off in " + file, "+\t\t\"deny\": [\"Read\", \"Bash\""}},
		{"install claude-code --replace", []string{"its own tools switched off in " + file, "bare denies in every workspace now mean the client's tools", "which keeps WebSearch"}},
		{"install claude-code --replace", []string{"nothing to do in " + file}},
		{"tools", []string{"Bash ", "Read "}}, // the denies mean the client's
		{"doctor --quick", []string{"the client's own tools, not ours: Bash, Edit"}},
		{"rules", []string{"native deny", "native tool"}},
		{"uninstall claude-code", []string{"its own tools switched on again in " + file}},
	} {
		out, ok := p.Run(t, []string{"PATH=" + p.Home}, host.Binary, strings.Fields(tt.args)...)
		for _, want := range tt.want {
			if !ok || !strings.Contains(out, want) {
				t.Errorf("%s does not say %q:\n%s", tt.args, want, out)
			}
		}
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != before {
		t.Errorf("%s holds %s, %v", file, after, err)
	}
	if left, _ := filepath.Glob(filepath.Join(p.Home, "config", "toolhost", "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if out, _ := p.Run(t, nil, host.Binary, "install", "copilot", "--force", "--replace",
		"--dry-run"); !strings.Contains(out, "Copilot CLI keeps bash, edit, glob, grep and view") || !strings.Contains(out, "use toolhost run") {
		t.Errorf("what stays is not said:\n%s", out)
	}
}
