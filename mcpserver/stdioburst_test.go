package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/integration/samples"
	"github.com/toolhost/toolhost/mcpserver/audit"
)

// TestTogetherNobodyWaitsForACall: of messages that came in together, none waits for a call that does not end.
func TestTogetherNobodyWaitsForACall(t *testing.T) {
	t.Parallel()
	c := startPipe(t, nil)
	const calls = 3 // the first runs, the others wait at the gate
	for round := range samples.Raced(20) {
		var together []string
		for i := range calls {
			together = append(together, toolCall(round*calls+i, "Bash", fmt.Sprintf(`{"command":"until [ -e go%d ]; do sleep 0.01; done"}`, round)))
		}
		c.send(strings.Join(append(together, `{"jsonrpc":"2.0","method":"notifications/something"}`, ping,
			strings.Replace(ping, `"p"`, `"p2"`, 1)), "\n"))
		for range 2 {
			if a := c.receive(); a.Error != nil {
				t.Fatalf("an answer to %s: %+v", a.ID, a.Error)
			}
		}
		writeFile(t, filepath.Join(c.root, fmt.Sprint("go", round)), "")
		answered := map[string]bool{}
		for range calls {
			a := c.receive()
			if answered[string(a.ID)] || !strings.Contains(string(a.Result), `"exit_code":0`) {
				t.Fatalf("an answer to %s: %s", a.ID, a.Result)
			}
			answered[string(a.ID)] = true
		}
	}
}

// TestTogetherAllAreAnswered: each of many is answered once, with what it asked for.
func TestTogetherAllAreAnswered(t *testing.T) {
	t.Parallel()
	const files = 40
	texts := map[string]string{}
	for i := range files {
		texts[fmt.Sprintf("f%d.txt", i)] = fmt.Sprintf("this is %d.\n", i)
	}
	c := startPipe(t, texts)
	for round := range samples.Raced(20) {
		var together []string
		for i := range files {
			together = append(together, toolCall(round*files+i, "Read", fmt.Sprintf(`{"file_path":"f%d.txt"}`, i)))
		}
		c.send(strings.Join(together, "\n"))
		answered := map[int]bool{}
		for range files {
			a := c.receive()
			var id int
			if err := json.Unmarshal(a.ID, &id); err != nil || answered[id] ||
				!strings.Contains(string(a.Result), fmt.Sprintf("this is %d.", id%files)) {
				t.Fatalf("an answer to %s: %s %+v", a.ID, a.Result, a.Error)
			}
			answered[id] = true
		}
	}
}

// A turnstile denies a file by the settings while a Bash call runs.
type turnstile struct{ settings string }

func (*turnstile) CallBegan(ctx context.Context, _ audit.Call) context.Context         { return ctx }
func (*turnstile) CallPlanned(context.Context, audit.Call, audit.Record)               {}
func (*turnstile) CallEnded(context.Context, audit.Call, audit.Record, builtin.Result) {}

func (s *turnstile) CallReached(_ context.Context, c audit.Call, at audit.Stage) {
	if c.Tool != "Bash" || at != audit.AtRun {
		return
	}
	if err := os.WriteFile(s.settings, []byte(`{"permissions":{"deny":["Read(secret.txt)"]}}`), 0o644); err != nil {
		panic(err)
	}
}

// TestTogetherSettingsAreLookedAtAnew: a call sees the settings as the one before it left them, though all came in before anybody
// looked.
func TestTogetherSettingsAreLookedAtAnew(t *testing.T) {
	t.Parallel()
	for range samples.Raced(5) {
		var turn turnstile
		c := startPipe(t, map[string]string{".claude/settings.json": `{}`, "secret.txt": "the secret\n"}, func(cfg *Config) {
			turn.settings = filepath.Join(cfg.Roots[0], ".claude", "settings.json")
			cfg.Observers = append(cfg.Observers, &turn)
		})
		const before, steps = 3, 7 // the call that denies the file, and how many there are
		var together []string
		for i := range steps {
			tool, args := "Read", `{"file_path":"secret.txt"}`
			if i == before {
				tool, args = "Bash", `{"command":"mkdir -p x"}`
			}
			together = append(together, toolCall(i, tool, args))
		}
		c.send(strings.Join(together, "\n"))
		for range steps {
			a := c.receive()
			var id int
			if err := json.Unmarshal(a.ID, &id); err != nil || a.Error != nil {
				t.Fatalf("an answer to %s: %+v", a.ID, a.Error)
			}
			if shown := strings.Contains(string(a.Result), "the secret"); shown != (id < before) {
				t.Fatalf("call %d: %s", id, a.Result)
			}
		}
	}
}

func TestLooks(t *testing.T) {
	var l reloads
	early := l.begun.Load()
	if l.serves(early) {
		t.Error("a look serves that nobody made")
	}
	first := l.begin()
	between := l.begun.Load()
	if l.serves(early) {
		t.Error("a look serves before it has ended")
	}
	l.done(first)
	if !l.serves(early) || l.serves(between) {
		t.Error("a look serves who arrived before it began, and nobody else")
	}
	second := l.begin()
	l.expire()
	l.done(second)
	if l.serves(early) || l.serves(between) {
		t.Error("a look serves that began before something may have changed the settings")
	}
	l.done(l.begin())
	l.done(first) // late: it takes nothing back
	if !l.serves(early) || !l.serves(between) {
		t.Error("a new look does not serve")
	}
}
