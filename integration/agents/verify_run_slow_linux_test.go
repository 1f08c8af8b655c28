//go:build slow

package agents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// readsItself is a client, as verify runs it, whose model has it read the canary in its own shell.
const readsItself = `#!/bin/sh
[ "$1" = --version ] && { echo 1.2.3; exit; }
turn() {
	curl -sS -H "Authorization: Bearer $KIMI_MODEL_API_KEY" "$KIMI_MODEL_BASE_URL/chat/completions" -d '{"tools": [{"type": "function", "function": {"name": "shell", "parameters":
		{"properties": {"command": {"type": "string"}}, "required": ["command"]}}}], "messages": ['"$1"']}'
}
turn
turn '{"role": "tool", "content": "'"$(cat canary.txt 2>&1)"'"}'
`

// TestVerifyRun: what a client's own shell gives away is held in toolhost run, and the report says so.
func TestVerifyRun(t *testing.T) {
	t.Parallel()
	p := newRunner(t)
	host.Must(t, os.Mkdir(filepath.Join(p.Home, "bin"), 0o755))
	host.Must(t, os.WriteFile(filepath.Join(p.Home, "bin/kimi"), []byte(readsItself), 0o755))
	env := []string{"PATH=" + filepath.Join(p.Home, "bin") + ":" + os.Getenv("PATH")}
	for _, tt := range []struct{ args, canary string }{{"kimi", "leaked"}, {"kimi --run", "held"}} {
		report, problem := p.verify(t, env, strings.Fields(tt.args)...)
		if !strings.Contains(string(report), `"canary": "`+tt.canary+`"`) ||
			!strings.Contains(string(report), `"shell"`) {
			t.Errorf("verify %s: %s\n%s", tt.args, report, problem)
		}
	}
	if out, ok := p.Run(t, env, host.Binary, "verify", "kimi", "--run", "--replace"); ok ||
		!strings.Contains(out, "[replace run]") {
		t.Errorf("both: %s", out)
	}
}
