package release

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/integration/host"
)

//go:generate go test . -run TestReadmeToolTable -update

// TestReadmeToolTable holds the README's table of tools against what the binary serves.
func TestReadmeToolTable(t *testing.T) {
	generated(t, "../../README.md", "tools", toolTable(t))
}

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

func toolTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| tool | parameters (* required) | hints | what it does |\n|---|---|---|---|\n")
	for _, tool := range listTools(t) {
		var params []string
		for name := range tool.InputSchema.Properties {
			param := "`" + name + "`"
			if slices.Contains(tool.InputSchema.Required, name) {
				param += "*"
			}
			params = append(params, param)
		}
		slices.SortFunc(params, func(a, b string) int { // required ones first
			if x, y := strings.HasSuffix(a, "*"), strings.HasSuffix(b, "*"); x != y {
				if x {
					return -1
				}
				return 1
			}
			return strings.Compare(a, b)
		})
		var hints []string
		for _, hint := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
			if tool.Annotations[hint] == true {
				hints = append(hints, strings.TrimSuffix(hint, "Hint"))
			}
		}
		summary, _, _ := strings.Cut(tool.Description, "\n")
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", tool.Name, strings.Join(params, " "), strings.Join(hints, ", "), summary)
	}
	return b.String()
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
