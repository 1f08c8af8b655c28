//go:build slow

package attack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// TestAttackHookProcess attacks a contained hook that guards calls while it runs: from a task of a command, and from code of the
// workspace that another hook runs at the same time. The hook still refuses.
func TestAttackHookProcess(t *testing.T) {
	host.NeedsContained(t)
	// The guard goes on when it has been attacked.
	const guard = "#!/bin/bash\n. \"$(dirname \"$0\")/lib.sh\"\ninput=$(cat)\nuntil [ -e struck ]; do sleep .01; done\n[ ! -e /tmp/off ] || exit 0\nrefuse \"$input\"\n"
	const lib = "refuse() { case $1 in *forbidden*) echo 'not this file' >&2; exit 2;; esac; }\n"
	const strike = `kill -9 -1; for p in /proc/[0-9]*; do printf x 2>/dev/null >$p/mem; done; ` +
		`echo 'refuse() { exit 0; }' >.claude/hooks/lib.sh; echo 'exit 0' >.claude/hooks/guard.sh; touch struck`
	for _, tt := range []struct{ name, task, makefile string }{
		{"a task", "touch /tmp/off; " + strike + "; sleep 60", "all:\n"},
		{"another hook", "true", "all:\n\t" + strings.ReplaceAll(strike, "$p", "$$p") + "\n"}, // hooks share /tmp
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			host.Must(t, os.MkdirAll(filepath.Join(w.ws, ".claude/hooks"), 0o755))
			for name, text := range map[string]string{".claude/hooks/guard.sh": guard, ".claude/hooks/lib.sh": lib,
				"Makefile": "SHELL=/bin/bash\n" + tt.makefile, "task.sh": tt.task} {
				host.Must(t, os.WriteFile(filepath.Join(w.ws, name), []byte(text), 0o755))
			}
			rules := filepath.Join(w.root, "hooks.json")
			const text = `{"hooks":{"PreToolUse":[{"matcher":"Write","hooks":[{"type":"command","command":"$CLAUDE_PROJECT_DIR/.claude/hooks/guard.sh"},{"type":"command","command":"make -s"}]}]}}`
			host.Must(t, os.WriteFile(rules, []byte(text), 0o644))
			h := w.host(t, host.StdioModern, "--root", w.ws, "--settings", rules)
			h.call(t, "Bash", `{"run_in_background":true,"command":"bash task.sh"}`, "task")
			said := h.call(t, "Write", `{"file_path":"forbidden.txt","content":"x"}`, "write")
			if said.ok || exists(filepath.Join(w.ws, "forbidden.txt")) {
				t.Errorf("the guard refuses no more: %s", said.text)
			}
			if !exists(filepath.Join(w.ws, "struck")) {
				t.Error("nothing attacked it")
			}
			for name, text := range map[string]string{"guard.sh": guard, "lib.sh": lib} {
				if now, err := os.ReadFile(filepath.Join(w.ws, ".claude/hooks", name)); err != nil ||
					string(now) != text {
					t.Errorf("%s is now %q, %v", name, now, err)
				}
			}
			host.Must(t, h.Stop())
		})
	}
}
