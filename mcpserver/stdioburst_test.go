package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"toolhost/mcpserver/audit"
)

// readOf is a call of Read.
func readOf(id int, file string) string {
	return toolCall(id, "Read", fmt.Sprintf(`{"file_path":%q}`, file))
}

// TestBurstWaitsForNothing: of calls that come in one piece, none is answered only when something has happened that may never happen.
func TestBurstWaitsForNothing(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the hook and the commands are for a shell")
	}
	hooks := filepath.Join(t.TempDir(), "settings.json")
	writeFile(t, hooks, `{"hooks":{"PreToolUse":[{"matcher":"Read","hooks":[{"type":"command","command":"if grep -q slow.txt; then until [ -e go ]; do sleep 0.01; done; fi"}]}]}}`)
	tests := []struct {
		name, sent string
		before     []string // the ids that are answered while what follows has not happened yet
		rest       string
	}{
		{"a call that takes long", readOf(1, "a.txt") + "\n" + readOf(2, "slow.txt") + "\n" + readOf(3, "a.txt") + "\n", []string{"1", "3"}, ""},
		{"a command that takes long", readOf(1, "a.txt") + "\n" + toolCall(2, "Bash", waitFor) + "\n", []string{"1"}, ""},
		{"a message that has only begun", readOf(1, "a.txt") + "\n" + readOf(2, "a.txt")[:20], []string{"1"}, readOf(2, "a.txt")[20:] + "\n"},
		{"a notification behind it", readOf(1, "a.txt") + "\n" + `{"jsonrpc":"2.0","method":"notifications/something"}` + "\n", []string{"1"}, readOf(2, "a.txt") + "\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := startPipe(t, map[string]string{"a.txt": "a\n", "slow.txt": "slow\n"}, func(c *Config) { c.Settings, c.Allow = []string{hooks}, []string{"Bash"} })
			put := func(text string) {
				if _, err := io.WriteString(c.in, text); err != nil {
					t.Fatal(err)
				}
			}
			put(tt.sent)
			missing := map[string]bool{}
			for _, id := range tt.before {
				missing[id] = true
			}
			for len(missing) > 0 {
				a := c.receive()
				if !missing[string(a.ID)] || a.Error != nil {
					t.Fatalf("an answer to %s: %+v", a.ID, a.Error)
				}
				delete(missing, string(a.ID))
			}
			writeFile(t, filepath.Join(c.root, "go"), "")
			put(tt.rest)
			if a := c.receive(); string(a.ID) != "2" || a.Error != nil {
				t.Errorf("the last answer is to %s: %+v", a.ID, a.Error)
			}
		})
	}
}

// TestBurstIsRecordedFirst: when an answer has come, its record is in the log.
func TestBurstIsRecordedFirst(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit.jsonl")
	c := startPipe(t, map[string]string{"a.txt": strings.Repeat("a line of a file\n", 500)}, func(c *Config) { c.AuditLog = log })
	const calls = 3 * maxHeld
	var all strings.Builder
	for i := range calls {
		file := "a.txt"
		if i%7 == 3 {
			file = "missing.txt"
		}
		fmt.Fprintln(&all, readOf(i, file))
	}
	c.send(strings.TrimSuffix(all.String(), "\n"))
	answered := map[string]bool{}
	for n := range calls {
		answered[string(c.receive().ID)] = true
		raw, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		if lines := bytes.Count(raw, []byte("\n")); lines <= n {
			t.Fatalf("%d records when %d calls are answered", lines, n+1)
		}
	}
	if len(answered) != calls {
		t.Errorf("%d of %d calls are answered", len(answered), calls)
	}
}

// TestBurstTellsWhatIsNotRecorded: each answer whose record could not be written says so.
func TestBurstTellsWhatIsNotRecorded(t *testing.T) {
	h, _ := openHost(t, nil, func(c *Config) { c.AuditLog = filepath.Join(t.TempDir(), "audit.jsonl") })
	s, err := NewServer(h)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.audit.Close(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	c := &stdioConn{server: s, out: newLineWriter(&out), calls: map[string]*stdioCall{}}
	c.burst.conn = c
	for i := range 2 {
		result := &mcp.CallToolResult{Content: []mcp.Content{mcp.NewTextContent("text")}}
		c.burst.hold(heldAnswer{id: "1", call: &stdioCall{}, response: plainAnswer{json.RawMessage("1"), result}, record: &audit.Record{Tool: "Read", Bytes: i}})
	}
	if out.Len() > 0 {
		t.Errorf("sent before it is settled: %s", &out)
	}
	c.burst.settle()
	if n := strings.Count(out.String(), "could not be written"); n != 2 || strings.Count(out.String(), "\n") != 2 {
		t.Errorf("%d of 2 answers tell it:\n%s", n, &out)
	}
}

// TestLookIsShared: calls that came in together look at the settings once; what comes later, or behind a call that may have changed
// them, looks again.
func TestLookIsShared(t *testing.T) {
	h, root := openHost(t, nil)
	var looks lookout
	number := looks.arrived.Add(1)
	first := h.settingsFor(&Arrival{looks: &looks, number: number})
	deny := func(rule string) {
		writeFile(t, filepath.Join(root, ".claude", "settings.json"), fmt.Sprintf(`{"permissions":{"deny":[%q]}}`, rule))
	}
	deny("Read(a)")
	if h.settingsFor(&Arrival{looks: &looks, number: number}) != first {
		t.Error("a call that had arrived before the look looks again")
	}
	next := h.settingsFor(&Arrival{looks: &looks, number: looks.arrived.Add(1)})
	if next == first {
		t.Error("a call that arrived later does not look")
	}
	deny("Read(ab)")
	h.changes.Add(1)
	if h.settingsFor(&Arrival{looks: &looks, number: number}) == next {
		t.Error("a call behind one that may have changed the settings does not look")
	}
	deny("Read(abc)")
	if now := h.settings.Current(); h.settingsFor(&Arrival{}) == now {
		t.Error("a call that shares no look does not look")
	}
}
