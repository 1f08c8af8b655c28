package fault

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// waits runs until the test makes the file go.
const waits = "; until [ -e go ]; do sleep .01; done"

// TestFaultOwnChanges: while a command runs, another conversation edits and another command writes. Each entry has what its own call changed, and
// a path that two commands may have changed is left, unless both are undone.
func TestFaultOwnChanges(t *testing.T) {
	g := newGround(t)
	g.Put("edited", "old\n")
	g.Put("both", "old\n")
	g.Put("first", "old\n")
	before := g.stands()
	s := g.start(host.StdioModern)
	s.covered()
	first, err := s.Start(s.Ctx, "Bash", host.Args{"command": "echo new > first; touch begun" + waits}.String(),
		host.Conversation("first"))
	host.Must(t, err)
	host.Eventually(t, func() string {
		if _, err := os.Lstat(g.Path("begun")); err != nil {
			return err.Error()
		}
		return ""
	})
	other := host.Conversation("other")
	for _, call := range []struct {
		tool string
		args host.Args
	}{
		{"Read", host.Args{"file_path": g.Path("edited")}},
		{"Edit", host.Args{"file_path": g.Path("edited"), "old_string": "old", "new_string": "new"}},
		{"Write", host.Args{"file_path": g.Path("d/e/written"), "content": "new\n"}},
		{"Bash", host.Args{"command": "echo new > both; touch go"}},
	} {
		p, err := s.Start(s.Ctx, call.tool, call.args.String(), other)
		host.Must(t, err)
		if r, err := p.Result(s.Ctx); err != nil || r.IsError {
			t.Fatalf("%s: %v %+v", call.tool, err, r)
		}
	}
	r, err := first.Result(s.Ctx)
	host.Must(t, err)
	if text := r.Text(); strings.Contains(text, "edited") || strings.Contains(text, "written") {
		t.Errorf("the first command tells of changes that are not its own: %s", text)
	}
	s.End()
	var calls []struct {
		ID, Command string
		Files       []struct{ Path string }
	}
	raw, err := g.Run("history", "--json")
	host.Must(t, err)
	host.Must(t, json.Unmarshal(raw, &calls))
	for _, c := range calls {
		if strings.HasPrefix(c.Command, "echo") && slices.ContainsFunc(c.Files, func(f struct{ Path string }) bool {
			return strings.HasSuffix(f.Path, "edited") || strings.HasSuffix(f.Path, "written") ||
				strings.HasSuffix(f.Path, "d")
		}) {
			t.Errorf("the entry of %q has what other calls changed: %+v", c.Command, c.Files)
		}
	}
	var commands []string
	for _, c := range calls {
		if strings.HasPrefix(c.Command, "echo") {
			commands = append(commands, c.ID)
		}
	}
	if len(commands) != 2 {
		t.Fatalf("%d commands have entries: %s", len(commands), raw)
	}
	for _, id := range commands {
		out, err := g.Run("undo", id, "--yes", "--dry-run")
		if text := string(out) + errorText(err); !strings.Contains(text, commands[0]) ||
			!strings.Contains(text, commands[1]) {
			t.Errorf("the undo of %s does not name both commands: %s", id, text)
		}
	}
	if out, err := g.Run("undo", commands[0], commands[1], "--yes"); err != nil {
		t.Errorf("the undo of both: %v %s", err, out)
	}
	now := g.stands()
	if now["edited"] == before["edited"] || now["d/e/written"] == "" || now["both"] != before["both"] ||
		now["first"] != before["first"] {
		t.Errorf("after the undo of both commands: %q", now)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
