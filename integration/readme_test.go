package integration

import (
	"encoding/json"
	"flag"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

//go:generate go test . -run TestReadmeToolTable -update

var update = flag.Bool("update", false, "write the table of tools into the README")

// TestReadmeToolTable holds the README's table of tools against what the binary serves.
func TestReadmeToolTable(t *testing.T) {
	generated(t, "../README.md", "tools", toolTable(t))
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
	cmd := exec.Command(binary, "tools", "--json", "--root", tempDir(t))
	cmd.Env = cleanEnv(tempDir(t))
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
	cmd := exec.Command(binary, "tools", "--json", "--root", tempDir(t))
	cmd.Env = cleanEnv(tempDir(t))
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
