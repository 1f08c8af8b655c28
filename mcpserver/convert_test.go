package mcpserver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/toolhost/toolhost/builtin"
)

// answered reads an answer: whether it is that of a call which failed, and its text.
func (c *pipeClient) answered(t *testing.T) (isError bool, text string) {
	t.Helper()
	raw, err := c.out.ReadBytes('\n')
	var answer struct {
		Result struct {
			IsError bool
			Content []struct{ Text string }
		}
	}
	if err != nil || json.Unmarshal(raw, &answer) != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	for _, content := range answer.Result.Content {
		text += content.Text
	}
	return answer.Result.IsError, text
}

// TestLongestIsTold: a client that keeps long results from a model is told how long those are that a tool bounds itself, and they are
// no longer.
func TestLongestIsTold(t *testing.T) {
	for _, d := range builtin.All() {
		tool, err := toMCP(d)
		if err != nil {
			t.Fatal(err)
		}
		if (d.Limit == 0) != (tool.Meta != nil && tool.Meta.AdditionalFields[metaLongest] == d.MaxResult &&
			d.MaxResult > 0) {
			t.Errorf("%s: limit %d, longest %d, told %v", d.Name, d.Limit, d.MaxResult, tool.Meta)
		}
	}
	c := startPipe(t, map[string]string{
		"short.txt": strings.Repeat("\n", 300_000), "lines.txt": strings.Repeat(strings.Repeat("x", 40)+"\r\n", 30_000), "wide.txt": strings.Repeat(strings.Repeat("y", 1999)+"\n", 100),
	})
	c.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"claude-code","version":"1"}}}`)
	c.answered(t)
	for _, name := range []string{"short.txt", "lines.txt", "wide.txt"} {
		c.send(toolCall(1, "Read", fmt.Sprintf(`{"file_path":%q,"limit":1000000}`, name)))
		isError, text := c.answered(t)
		if n := utf8.RuneCountInString(text); isError || n < 65_000 || n > builtin.Read.MaxResult {
			t.Errorf("%s: an error: %v, %d characters", name, isError, n)
		}
	}
}
