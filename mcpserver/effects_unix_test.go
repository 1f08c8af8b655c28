//go:build slow && unix

package mcpserver

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/mcpserver/audit"
)

var update = flag.Bool("update", false, "write the golden files anew")

// effectCalls has a call of each kind of effect, and some that rules speak of.
var effectCalls = [][2]string{
	{"Read", `{"file_path":"a.txt"}`},
	{"Read", `{"file_path":"OUTSIDE/b.txt"}`},
	{"Read", `{"file_path":"denied.txt"}`},
	{"Read", `{"file_path":"asked.txt"}`},
	{"Glob", `{"pattern":"*.txt"}`},
	{"Grep", `{"pattern":"x","path":"OUTSIDE"}`},
	{"Write", `{"file_path":"new.txt","content":"new\n"}`},
	{"Write", `{"file_path":"OUTSIDE/new.txt","content":"new\n"}`},
	{"Edit", `{"file_path":"denied.txt","old_string":"a","new_string":"b"}`},
	{"Edit", `{"file_path":".git/config","old_string":"a","new_string":"b"}`},
	{"NotebookEdit", `{"notebook_path":"n.ipynb","cell_id":"1","new_source":"x"}`},
	{"Bash", `{"command":"echo out"}`},
	{"Bash", `{"command":"touch made"}`},
	{"Bash", `{"command":"touch made","dangerouslyDisableSandbox":true}`},
	{"Bash", `{"command":"rm forbidden && true"}`},
	{"Bash", `{"command":"touch allowed"}`},
	{"TaskOutput", `{"task_id":"none"}`},
	{"TaskStop", `{"task_id":"none"}`},
	{"extra", `{"x":"y"}`},
	{"extra-denied", `{}`},
	{"extra-asked", `{}`},
	{"extra-allowed", `{}`},
	{"extra", `{"kind":"bad"}`},
}

// TestEffectsAreShown compares what the audit log, "toolhost check --json" and questions say of calls of every kind, in each mode, with what
// they said when the file was written.
func TestEffectsAreShown(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("not with -short")
	}
	var b strings.Builder
	for _, mode := range []string{settings.ModeDefault, settings.ModeAcceptEdits, settings.ModePlan,
		settings.ModeDontAsk, settings.ModeBypass} {
		for i, shown := range effectsShown(t, mode) {
			fmt.Fprintf(&b, "%s %s %s\n%s\n", mode, effectCalls[i][0], effectCalls[i][1], shown)
		}
	}
	golden := filepath.Join("testdata", "effects.golden")
	if *update {
		writeFile(t, golden, b.String())
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	got, lines := strings.Split(b.String(), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(got), len(lines)) {
		if i >= len(got) || i >= len(lines) || got[i] != lines[i] {
			t.Fatalf("line %d of %s differs:\n got %s\nwant %s", i+1, golden,
				strings.Join(got[i:min(i+1, len(got))], ""), strings.Join(lines[i:min(i+1, len(lines))], ""))
		}
	}
}

// variable is what differs from run to run in a record.
var variable = regexp.MustCompile(`"(time|scope|question)":"[^"]*",?|"(duration_ms|result_bytes)":[0-9.]+,?`)

// effectsShown makes the calls and returns for each its record, the verdict of a check, and the question.
func effectsShown(t *testing.T, mode string) (shown []string) {
	t.Helper()
	outside, log := t.TempDir(), filepath.Join(t.TempDir(), "audit.jsonl")
	writeFile(t, filepath.Join(outside, "b.txt"), "b\n")
	config := filepath.Join(t.TempDir(), "settings.json")
	writeFile(t, config, fmt.Sprintf(`{"permissions": {"defaultMode": %q,
		"deny": ["Edit(denied.txt)", "Read(denied.txt)", "Bash(rm *)", "extra-denied", "extra(kind:bad)"],
		"ask": ["Read(asked.txt)", "extra-asked"],
		"allow": ["Bash(touch allowed)", "extra-allowed"]},
		"sandbox": {"enabled": false}}`, mode))
	run := func(context.Context, ExtraCall) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("ran"), nil
	}
	h, root := openHost(t, map[string]string{
		"a.txt": "a\n", "denied.txt": "a\n", "asked.txt": "a\n", ".git/config": "a\n",
		"n.ipynb": `{"cells":[{"cell_type":"code","id":"1","source":"","metadata":{},"outputs":[],"execution_count":null}],"metadata":{},"nbformat":4,"nbformat_minor":5}`,
	}, func(c *Config) {
		c.AuditLog, c.Settings = log, []string{config}
		for _, name := range []string{"extra", "extra-denied", "extra-asked", "extra-allowed"} {
			c.Extension.Tools = append(c.Extension.Tools, ExtraTool{Tool: mcp.NewTool(name), Run: run})
		}
	})
	replace := strings.NewReplacer(root, "ROOT", outside, "OUTSIDE", filepath.Dir(config), "SETTINGS")
	ctx := context.WithValue(context.Background(), extraKey{}, &extraRun{})
	said, questions := make([]string, len(effectCalls)), make([]*Question, len(effectCalls))
	for i, call := range effectCalls {
		tool, args := call[0], json.RawMessage(strings.ReplaceAll(call[1], "OUTSIDE", outside))
		verdict, err := h.Operator().Check(context.Background(), LocalPrincipal, tool, args)
		if err != nil {
			t.Fatal(err)
		}
		checked, err := json.Marshal(verdict)
		if err != nil {
			t.Fatal(err)
		}
		said[i] = fmt.Sprintf("  check %s\n", checked)
		q := h.Call(ctx, h.AdmitNamed("one"), Request{Tool: tool, Args: args, Client: builtin.Client{CanAsk: true}}).Question
		if questions[i] = q; q != nil {
			said[i] += fmt.Sprintf("  question %q in %q, input %s, always %q\n", q.Message, q.Dir, q.Input, q.Always)
		}
	}
	if err := h.Close(); err != nil { // writes what waits for an answer
		t.Fatal(err)
	}
	records, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	asked, others := map[string]string{}, []string{} // by question; in the order of the calls
	for line := range strings.Lines(string(records)) {
		var r audit.Record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if shown := "  audit " + variable.ReplaceAllString(line, ""); r.Question != "" {
			asked[r.Question] = shown
		} else {
			others = append(others, shown)
		}
	}
	if len(asked)+len(others) != len(effectCalls) {
		t.Fatalf("%d records of %d calls", len(asked)+len(others), len(effectCalls))
	}
	for i, q := range questions {
		var record string
		if q != nil {
			record = asked[q.ID]
		} else {
			record, others = others[0], others[1:]
		}
		shown = append(shown, replace.Replace(record+said[i]))
	}
	return shown
}
