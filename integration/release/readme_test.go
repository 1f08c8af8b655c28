package release

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/integration/host"
)

// A listedTool is a tool as clients see it in the list.
type listedTool struct {
	Name        string
	Title       string
	Description string
	InputSchema struct {
		Properties map[string]json.RawMessage
		Required   []string
	}
	Annotations map[string]any
}

// listTools asks the binary for its list of tools.
func listTools(t *testing.T) []listedTool {
	t.Helper()
	cmd := exec.Command(host.Binary, "tools", "--json", "--root", host.TempDir(t))
	cmd.Env = host.CleanEnv(host.TempDir(t))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Tools []listedTool }
	if err := json.Unmarshal(out, &list); err != nil {
		t.Fatal(err)
	}
	return list.Tools
}

// TestToolList holds the list of tools against what clients can take.
func TestToolList(t *testing.T) {
	const wholeList, description = 20 << 10, 2048 // bytes; characters, where Claude Code cuts
	cmd := exec.Command(host.Binary, "tools", "--json", "--root", host.TempDir(t))
	cmd.Env = host.CleanEnv(host.TempDir(t))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if len(out) > wholeList {
		t.Errorf("the list of tools has %d bytes, more than %d", len(out), wholeList)
	}
	if strings.Contains(string(out), `"null"`) {
		t.Error(`a schema says "null": strict clients refuse that`)
	}
	for _, tool := range listTools(t) {
		if n := len([]rune(tool.Description)); n == 0 || n > description {
			t.Errorf("%s: a description of %d characters", tool.Name, n)
		}
		for _, hint := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
			if _, ok := tool.Annotations[hint]; !ok {
				t.Errorf("%s: %s is missing", tool.Name, hint)
			}
		}
	}
}

// TestOptInTools has every tool that is served on demand: each costs at most 350 tokens, by four bytes a token, and none is listed or
// found without demand.
func TestOptInTools(t *testing.T) {
	const most = 350 * 4 // bytes
	p := host.NewPerson(t)
	tools := func(flags ...string) map[string]json.RawMessage {
		t.Helper()
		out, ok := p.Run(t, nil, host.Binary, append([]string{"tools", "--json"}, flags...)...)
		var list struct{ Tools []json.RawMessage }
		if err := json.Unmarshal([]byte(out), &list); err != nil || !ok {
			t.Fatal(err, out)
		}
		all := map[string]json.RawMessage{}
		for _, raw := range list.Tools {
			var tool listedTool
			var compact bytes.Buffer
			host.Must(t, json.Unmarshal(raw, &tool))
			host.Must(t, json.Compact(&compact, raw))
			all[tool.Name] = compact.Bytes()
		}
		return all
	}
	var with, demanded []string // by --with, and by it or settings
	usual := tools()
	for _, d := range builtin.All() {
		if d.OptIn {
			with = append(with, d.Name)
		}
		if usual[d.Name] == nil {
			demanded = append(demanded, d.Name)
		} else if d.OptIn {
			t.Errorf("%s is listed without demand", d.Name)
		}
	}
	found, _ := p.Run(t, nil, host.Binary, "call", "ToolSearch", `{"query": "select:`+strings.Join(demanded, ",")+`"}`)
	p.Settings(t, `{"agent": {"runner": "claude"}, "web": {"search": {"provider": "searxng", "url": "http://localhost:8888"}}}`)
	asked := tools("--with", strings.Join(with, ","))
	for _, name := range demanded {
		if n := len(asked[name]); n == 0 || n > most {
			t.Errorf("%s: its definition has %d bytes, expected 1 to %d", name, n, most)
		}
		if !strings.Contains(found, "There is no tool "+name) {
			t.Errorf("ToolSearch finds %s:\n%s", name, found)
		}
	}
}
