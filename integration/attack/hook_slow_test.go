//go:build slow && unix

package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// TestAttackHookFile writes what a hook of the user runs that lies in the workspace: the next call would run it outside of
// the sandbox, and without what it guards.
func TestAttackHookFile(t *testing.T) {
	t.Parallel()
	held := host.Contained(t)
	const shell, python = "tools/guard", "tools/guard.py"
	for _, hook := range samples.Of([]struct{ command, args, file string }{
		{"${CLAUDE_PROJECT_DIR}/tools/guard", "", shell},
		{`"$CLAUDE_PROJECT_DIR"/tools/guard --strict`, "", shell},
		{`"$CLAUDE_PROJECT_DIR/tools/guard" || exit 2`, "", shell},
		{"${CLAUDE_PROJECT_DIR}/tools/guard", `["-x"]`, shell},
		{"python3", `["${CLAUDE_PROJECT_DIR}/tools/guard.py"]`, python},
		{"./tools/guard", "", shell},
		{"cd tools && ./guard", "", shell},
		{"bash -c 'exec tools/guard'", "", shell},
		{"timeout 5 env X=1 python3 tools/guard.py", "", python},
		{". tools/guard", "", shell},
		{"tee -a /dev/null | tools/guard", "", shell},
		{"[ ! -x tools/late ] || tools/late", "", "tools/late"},
	}, 1) {
		t.Run(strings.NewReplacer(" ", "-", "/", ":").Replace(hook.command+hook.args), func(t *testing.T) {
			w := newWorld(t)
			pwned := filepath.Join(w.root, "pwned")
			was := map[string]string{shell: "#!/bin/sh\nexit 0\n", python: "\n"}
			for name, text := range was {
				if err := os.MkdirAll(filepath.Join(w.ws, "tools"), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(w.ws, name), []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			rules := filepath.Join(w.root, "hooks.json")
			if hook.args == "" {
				hook.args = "null"
			}
			text := fmt.Sprintf(`{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":%s,"args":%s}]}]}}`,
				quoted(t, hook.command), hook.args)
			if hook.args == "null" {
				text = strings.Replace(text, `,"args":null`, "", 1)
			}
			if err := os.WriteFile(rules, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			h := w.host(t, host.StdioModern, "--root", w.ws, "--settings", rules)
			evil := "#!/bin/sh\ntouch " + pwned + "\n"
			if hook.file == python {
				evil = "open('" + pwned + "', 'w')\n"
			}
			calls := [][2]string{
				{"Read", `{"file_path":"` + hook.file + `"}`},
				{"Write", `{"file_path":"` + hook.file + `","content":` + quoted(t, evil) + `}`},
			}
			if held {
				for _, command := range []string{
					"printf '%s' " + shellWord(evil) + " >" + hook.file,
					"f=$(printf %s " + hook.file + "); printf '%s' " + shellWord(evil) + ` >"$f"; chmod +x "$f"`,
					"mkdir -p new; printf '%s' " + shellWord(evil) + " >new/" + filepath.Base(hook.file) + "; chmod +x new/*; d=tool; mv ${d}s old; mv new ${d}s",
					"rm -rf too?s",
				} {
					calls = append(calls, [2]string{"Bash", `{"command":` + quoted(t, command) + `}`})
				}
			}
			for i, call := range calls {
				said := h.call(t, call[0], call[1], fmt.Sprint(i))
				h.call(t, "Glob", `{"pattern":"*"}`, "after")
				if exists(pwned) {
					t.Fatalf("%s %s made the hook run something else: %s", call[0], call[1], said.text)
				}
			}
			if now, err := os.ReadFile(filepath.Join(w.ws, hook.file)); was[hook.file] != "" &&
				(err != nil || string(now) != was[hook.file]) {
				t.Errorf("%s holds %q, %v", hook.file, now, err)
			}
			if said := h.call(t, "Write", `{"file_path":"tools/README","content":"x"}`, "beside"); !said.ok {
				t.Errorf("a file beside cannot be written: %s", said.text)
			}
			w.before = w.snapshot()
			w.end(t, h)
		})
	}
}

func shellWord(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
