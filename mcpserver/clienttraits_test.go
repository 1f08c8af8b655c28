//go:build slow

package mcpserver

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestResultsFitTheClient: of a result that its client would cut, or put aside, the whole is kept and its path told, or the page goes
// on where it ends.
func TestResultsFitTheClient(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	const claude, codex, copilot, qwen = "claude-code", "codex-mcp-client", "copilot-cli", "qwen-cli-mcp-client-toolhost"
	read := func(limit int) string { return fmt.Sprintf(`{"file_path":"lines.txt","limit":%d}`, limit) }
	cell := fmt.Sprintf(`{"cell_type":"markdown","id":"c%%d","metadata":{},"source":["%s"]}`, strings.Repeat("x", 400))
	var cells []string
	for i := range 300 {
		cells = append(cells, fmt.Sprintf(cell, i))
	}
	notebook := `{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[` + strings.Join(cells, ",") + `]}`
	for _, test := range []struct {
		client, tool, arguments string
		least, most             int    // characters
		says                    string // the rest, if there is one
	}{
		{claude, "Bash", `{"command":"seq 5000; exit 1"}`, 9_000, 10_000, `The whole is kept in (\S+\.txt)`},
		{claude, "Bash", `{"command":"seq 50000; exit 1"}`, 8_500, 10_000, `The whole output .* is in (\S+\.txt)`},
		{claude, "Bash", `{"command":"seq 5000"}`, 23_000, 24_000, ""},
		{claude, "Read", read(2000), 80_000, 87_500, `Go on with offset=(\d+)`},
		{codex, "Bash", `{"command":"seq 5000; exit 1"}`, 23_000, 24_000, ""},
		{codex, "Read", read(2000), 37_500, 40_000, `Go on with offset=(\d+)`},
		{codex, "Read", read(100), 4_500, 6_000, `Go on with offset=101\b`},
		{copilot, "Bash", `{"command":"seq 5000"}`, 18_500, 19_500, `The whole is kept in (\S+\.txt)`},
		{copilot, "Bash", `{"command":"seq 50000"}`, 18_000, 19_500, `The whole output .* is in (\S+\.txt)`},
		{copilot, "Bash", `{"command":"seq 3000"}`, 13_000, 14_000, ""},
		{copilot, "Grep", `{"pattern":"x","output_mode":"content","head_limit":0}`, 18_500, 19_500, `The whole is kept in (\S+\.txt)`},
		{copilot, "Read", read(2000), 18_000, 19_500, `Go on with offset=(\d+)`},
		{"@cline/core", "Bash", `{"command":"seq 50000"}`, 5_800, 6_500, `The whole output .* is in (\S+\.txt)`},
		{"@cline/core", "Read", read(2000), 5_500, 6_500, `Go on with offset=(\d+)`},
		{copilot, "Read", `{"file_path":"cells.ipynb"}`, 17_000, 19_500, `Go on with offset=(\d+)`},
		{"a program", "Read", `{"file_path":"cells.ipynb"}`, 45_000, 48_000, `Go on with offset=(\d+)`},
		{"a program", "Bash", `{"command":"seq 5000; exit 1"}`, 23_000, 24_000, ""},
		{"a program", "Read", read(2000), 45_000, 48_000, `Go on with offset=(\d+)`},
		{"a program", "Grep", `{"pattern":"x","output_mode":"content","head_limit":0}`, 29_000, 30_000, `The whole is kept in (\S+\.txt)`},
		{qwen, "Bash", `{"command":"seq 5000"}`, 22_000, 24_500, ""},
		{qwen, "Bash", `{"command":"seq 5000; exit 1"}`, 900, 1_500, `The whole is kept in (\S+\.txt)`},
		{qwen, "Bash", `{"command":"seq 5000; exit 1 #` + strings.Repeat("x", 700) + `"}`, 400, 1_500, `The whole is kept in (\S+\.txt)`},
		{"kilo", "Read", read(2000), 47_500, 50_000, `Go on with offset=(\d+)`},
		{"kimi-code", "Read", read(2000), 47_000, 49_500, `Go on with offset=(\d+)`},
	} {
		t.Run(test.client+" "+test.tool+" "+test.arguments, func(t *testing.T) {
			c := startPipe(t, map[string]string{"lines.txt": strings.Repeat(strings.Repeat("x", 39)+"\n", 2000),
				"cells.ipynb": notebook})
			c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":%q,"version":"1"}}}`, test.client))
			c.answered(t)
			c.send(toolCall(1, test.tool, test.arguments))
			isError, text := c.answered(t)
			if n := utf8.RuneCountInString(text); isError != strings.Contains(test.arguments, "exit") ||
				n < test.least || n > test.most {
				t.Fatalf("is an error: %v, %d characters\n%.200s … %s", isError, n, text, text[max(0, len(text)-200):])
			}
			said := regexp.MustCompile(test.says).FindStringSubmatch(text)
			if test.says == "" && strings.Contains(text, "kept in") || said == nil {
				t.Fatalf("the text ends with\n%s", text[max(0, len(text)-400):])
			}
			if !strings.HasSuffix(test.says, "txt)") {
				return
			}
			whole, err := os.ReadFile(said[1])
			if lines := strings.Count(string(whole), "\n"); err != nil || lines < 2000 ||
				strings.Count(text, "\n") >= lines {
				t.Errorf("%v: %d lines are kept", err, lines)
			}
		})
	}
}
