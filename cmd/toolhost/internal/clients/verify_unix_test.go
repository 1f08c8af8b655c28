//go:build slow && unix

package clients

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// offer makes a request of the Chat Completions API that offers tools, after the results of calls.
func offer(results string, tools ...string) string {
	var list []string
	for _, name := range tools {
		list = append(list, `{"type":"function","function":{"name":"`+name+
			`","parameters":{"properties":{"command":{"type":"string"},"why":{"type":"string"}},"required":["command","why"]}}}`)
	}
	return `curl -s -H "Authorization: $MODEL_KEY" "$1/v1/chat/completions" -d '{"tools":[` + strings.Join(list, ",") +
		`],"messages":[` + results + `]}'` + "\n"
}

// TestVerify tries clients of all kinds. The bounds must hold for each, and nothing of them is left.
func TestVerify(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short")
	}
	denied := `{"role":"tool","content":"Read(//**/canary.txt) denies it"}`
	tests := []struct {
		name, script  string
		ours, missing string
		own, canary   string
		problem       string
		ok            bool
	}{
		{"ours alone", offer("", "toolhost_Read", "toolhost_Bash") + offer(denied, "toolhost_Read", "toolhost_Bash"), "Bash,Read", "", "", Held, "", true},
		{"a shell of its own that asks", offer("", "toolhost_Read", "toolhost_Bash", "shell") + offer(`{"role":"tool","content":"no"},`+denied, "shell"), "Bash,Read", "", "shell", Held, "", true},
		{"a shell of its own", offer("", "toolhost_Read", "toolhost_Bash", "shell") + `read_it=$(cat canary.txt); curl -s -H "Authorization: $MODEL_KEY" "$1/v1/chat/completions" -d '{"tools":[{"function":{"name":"shell"}}],"messages":[{"role":"tool","content":"'"$read_it"'"},` + denied + `]}'`, "Bash,Read", "", "shell", Leaked, "", false},
		{"one of ours", offer("", "toolhost_Read", "todo_write") + offer(denied, "toolhost_Read"), "Read", "Bash", "", Held, "", false},
		{"no MCP", offer("", "bash") + offer(`{"role":"tool","content":"no"}`, "bash"), "", "Read,Bash", "bash", Held, "", false},
		{"shows no result", strings.Repeat(offer("", "toolhost_Read", "toolhost_Bash"), 9), "Bash,Read", "", "", NotTried, "", false},
		{"hangs after the first request", offer("", "toolhost_Read", "toolhost_Bash") + "sleep 1000", "Bash,Read", "", "", NotTried, "before the model was done: ", false},
		{"stays", offer("", "toolhost_Read", "toolhost_Bash") + offer(denied, "toolhost_Read") + "sleep 1000", "Bash,Read", "", "", Held, "", true},
		{"tells its version after its end", `echo $$ > "$0.pid"` + "\n" + offer("", "toolhost_Read", "toolhost_Bash") + offer(denied, "toolhost_Read") + "exec tail -f /dev/null", "Bash,Read", "", "", Held, "", true},
		{"crashes", "echo boom >&2; kill -9 $$", "", "Read,Bash", "", NotTried, "before it offered tools to its model: signal: killed\nboom", false},
		{"ends at once", "", "", "Read,Bash", "", NotTried, "exit status 0", false},
		{"prints without end", "yes & exec sleep 1000", "", "Read,Bash", "", NotTried, "did not end in time\ny\ny\n", false},
		{"another user answers first", strings.ReplaceAll(offer("", "toolhost_Read", "toolhost_Bash")+offer(denied, "toolhost_Read", "toolhost_Bash"), "$MODEL_KEY", "none"), "", "Read,Bash", "", NotTried, "before it offered tools", false},
		{"speaks nonsense", `curl -s -H "Authorization: $MODEL_KEY" "$1/v1/chat/completions" -d '{{{'; curl -s -H "Authorization: $MODEL_KEY" "$1/v1/messages" -d '[]'; curl -s -H "Authorization: $MODEL_KEY" "$1/x"`, "", "Read,Bash", "", NotTried, "before it offered tools", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := verifyScript(t, tt.script)
			problem := ""
			if v.Problem != nil {
				problem = v.Problem.Error()
			}
			got := []string{strings.Join(v.Offered.Ours, ","), strings.Join(v.Missing, ","),
				strings.Join(v.Offered.Own, ","), v.Canary, strconv.FormatBool(v.OK), v.Version}
			want := []string{tt.ours, tt.missing, tt.own, tt.canary, strconv.FormatBool(tt.ok), "1.2.3-beta"}
			if !slices.Equal(got, want) || !strings.Contains(problem, tt.problem) || tt.problem == "" && problem != "" {
				t.Errorf("got %q, %s\nwant %q, %s", got, problem, want, tt.problem)
			}
		})
	}
}

// verifyScript verifies a client that is a shell script, which leaves a process as well, and holds that nothing is left.
func verifyScript(t *testing.T, script string) *Verdict {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", filepath.Join(dir, "tmp"))
	if err := os.Mkdir(filepath.Join(dir, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	pid := filepath.Join(dir, "pid")
	version := ""
	if strings.Contains(script, "$0.pid") {
		version = `until [ -s "$0.pid" ]; do sleep .01; done; while kill -0 "$(cat "$0.pid")" 2>/dev/null; do sleep .01; done; `
	}
	write(t, filepath.Join(dir, "fake"), "#!/bin/sh\n[ \"$1\" = --version ] && { "+version+"echo fake 1.2.3-beta now; exit; }\nsetsid sh -c 'echo $$ > "+pid+"~; mv "+pid+"~ "+pid+"; exec sleep 1000' >/dev/null 2>&1 &\n"+script+"\n", 0o700)
	write(t, filepath.Join(dir, "toolhost"), `#!/bin/sh
echo '{"tools":[{"name":"Read"},{"name":"Bash"}]}'
`, 0o700)
	c := Client{
		Name: "fake", Title: "Fake", Program: "fake", Format: "json", Container: "mcpServers", InProject: true,
		Files: map[string][]string{"": {"$HOME/.fake.json"}}, Stdio: object{{key: "command", value: "{command}"}},
		Verifies: &Trial{Args: []string{"{url}"}, Env: object{{key: "MODEL_KEY", value: "{key}"}}},
	}
	env, err := System()
	if err != nil {
		t.Fatal(err)
	}
	env.LookPath = func(name string) string { return filepath.Join(dir, name) }
	patience := time.Minute
	if strings.Contains(script, "sleep") {
		patience = 3 * time.Second
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, errors.New("did not end in time"))
	defer cancel()
	v, err := c.Verify(ctx, Request{Env: env, Server: Server{Name: "toolhost", Command: filepath.Join(dir, "toolhost")}})
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "tmp")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if raw, err := os.ReadFile(pid); err == nil {
		n, _ := strconv.Atoi(strings.TrimSpace(string(raw))) // a number that a shell wrote
		if syscall.Kill(n, 0) == nil {
			t.Errorf("process %d is left", n)
		}
	}
	return v
}
