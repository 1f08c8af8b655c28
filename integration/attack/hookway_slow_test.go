//go:build slow && linux

package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// TestAttackHookMade makes a file that a hook would run, and that did not exist: the program itself, while the command that made it still
// runs, and a module next to a script.
func TestAttackHookMade(t *testing.T) {
	host.NeedsContained(t)
	for _, tt := range []struct{ hook, command, made string }{
		{"tools/late", "mkdir -p tools; printf '#!/bin/sh\\ntouch %s\\n' >tools/late; chmod +x tools/late", "tools/late"},
		{"[ ! -e tools/late.sh ] || . tools/late.sh", "mkdir -p tools; printf 'touch %s\\n' >tools/late.sh", "tools/late.sh"},
		{"python3 .claude/hooks/guard.py", "printf 'open(\"%s\", \"w\")\\n' >.claude/hooks/json.py", ""},
		{"python3 pkg/.claude/hooks/guard.py", "printf 'open(\"%s\", \"w\")\\n' >pkg/.claude/hooks/json.py; mv pkg pkg2", ""},
		{"notify", "mkdir -p bin; printf '#!/bin/sh\\ntouch %s\\n' >bin/notify; chmod +x bin/notify", "bin/notify"},
	} {
		for _, contained := range []bool{true, false} {
			t.Run(fmt.Sprint(filepath.Base(tt.hook), " ", contained),
				func(t *testing.T) { attackHookMade(t, tt.hook, contained, tt.command, tt.made) })
		}
	}
}

func attackHookMade(t *testing.T, hook string, contained bool, command, made string) {
	w := newWorld(t)
	t.Setenv("PATH", filepath.Join(w.ws, "bin")+":"+os.Getenv("PATH"))
	for _, dir := range []string{".claude/hooks", "pkg/.claude/hooks"} {
		host.Must(t, os.MkdirAll(filepath.Join(w.ws, dir), 0o755))
		host.Must(t, os.WriteFile(filepath.Join(w.ws, dir, "guard.py"), []byte("import json\n"), 0o644))
	}
	escaped, rules := filepath.Join(w.root, "escaped"), filepath.Join(w.root, "hooks.json")
	host.Must(t, os.WriteFile(rules, []byte(fmt.Sprintf(`{"hooks":{"PostToolUse":[{"matcher":"Glob","hooks":[{"type":"command","contained":%v,"command":%s}]}]}}`, contained, quoted(t, hook))), 0o644))
	h := w.host(t, host.StdioModern, "--root", w.ws, "--settings", rules)
	h.call(t, "Glob", `{"pattern":"x"}`, "before")
	text := "import os\nos.system(" + quoted(t, fmt.Sprintf(command, escaped)+"; touch begun; sleep 60") + ")\n"
	host.Must(t, os.WriteFile(filepath.Join(w.ws, "make.py"), []byte(text), 0o644))
	said := h.call(t, "Bash", `{"run_in_background":true,"command":"python3 make.py"}`, "make")
	host.Eventually(t, func() string {
		if !exists(filepath.Join(w.ws, "begun")) {
			return "the command has not begun: " + said.text
		}
		return ""
	})
	if path := filepath.Join(w.ws, made); !exists(path) && !exists(path+".quarantined-1") {
		t.Errorf("%s was not made: the attack is none", made)
	}
	h.call(t, "Glob", `{"pattern":"x"}`, "after")
	h.call(t, "Glob", `{"pattern":"y"}`, "again")
	if exists(escaped) {
		t.Errorf("%s ran what a command made, outside of the sandbox", hook)
	}
	host.Must(t, h.Stop())
}
