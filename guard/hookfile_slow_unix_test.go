//go:build slow && unix

package guard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/guard/internal/command"
	"github.com/toolhost/toolhost/guard/settings"
)

// TestHookAny reads every command of the tables of the parser as a hook, in a shell and in a shell within a shell: none makes
// the rules fail.
func TestHookAny(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	makeHookWorkspace(t, root)
	names := []string{"tricky.txt", "commands.txt", "benign.txt"}
	if testing.Short() {
		names = names[:1]
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join("internal", "command", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			hookPolicy(t, root, settings.Hook{Type: "command", Command: line})
			hookPolicy(t, root, settings.Hook{Type: "command", Command: "bash -c " + command.Quote(line)})
		}
	}
}
