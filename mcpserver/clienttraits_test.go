package mcpserver

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestErrorsFitTheClient: of an error that its client would cut without a trace the whole is kept, and its path is told.
func TestErrorsFitTheClient(t *testing.T) {
	const fails, succeeds = `{"command":"seq 5000; exit 1"}`, `{"command":"seq 5000"}`
	for _, test := range []struct {
		client, arguments string
		longest           int // 0: not cut
	}{
		{"claude-code", fails, claudeErrors},
		{"claude-code", succeeds, 0},
		{"codex-mcp-client", fails, 0},
	} {
		t.Run(test.client+" "+test.arguments, func(t *testing.T) {
			c := startPipe(t, nil)
			c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":%q,"version":"1"}}}`, test.client))
			c.answered(t)
			c.send(toolCall(1, "Bash", test.arguments))
			isError, text := c.answered(t)
			if isError != strings.Contains(test.arguments, "exit") {
				t.Fatalf("is an error: %v\n%.200s", isError, text)
			}
			kept := regexp.MustCompile(`The whole is kept in (\S+\.txt)`).FindStringSubmatch(text)
			if test.longest == 0 {
				if kept != nil || utf8.RuneCountInString(text) < 23_000 {
					t.Errorf("the text is cut to %d characters", utf8.RuneCountInString(text))
				}
				return
			}
			if n := utf8.RuneCountInString(text); kept == nil || n > test.longest || !strings.HasSuffix(strings.TrimSpace(text), "\n5000") {
				t.Fatalf("%d characters, of which the whole is in %q", n, kept)
			}
			if whole, err := os.ReadFile(kept[1]); err != nil || !strings.Contains(string(whole), "\n2500\n") {
				t.Errorf("%v: %.100q", err, whole)
			}
		})
	}
}
