//go:build slow && linux

package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// TestAttackHookSpelling has hooks run files of the workspace in every spelling, replaces all these files, and looks whether
// one of the new ones ran outside of the sandbox.
func TestAttackHookSpelling(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	for _, way := range []struct {
		name string
		user int
		step int // in the table of spellings
	}{{"namespaces", 0, 2}, {"namespaces as a user", ordinaryUser, 6}} {
		t.Run(strings.ReplaceAll(way.name, " ", "-"), func(t *testing.T) {
			if way.user != 0 && os.Geteuid() != 0 {
				t.Skip("only root can run a host as another user")
			}
			attackHookSpellings(t, newWorld(t), way.user, way.step)
		})
	}
}

// hookTable returns the hooks of a table, one a line.
func hookTable(t *testing.T, name string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "hooks", name))
	host.Must(t, err)
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			lines = append(lines, line)
		}
	}
	return lines
}

// heldHooks run files that are held. They run outside of the sandbox, too: with "contained": false.
var heldHooks = []string{
	"tools/guard", "sh tools/guard", ". tools/guard", "cd tools && ./guard", "sh -c 'exec tools/guard'", `"$CLAUDE_PROJECT_DIR"/tools/guard`,
	"timeout 5 tools/guard", "python3 -I tools/guard.py", "[ ! -x tools/late ] || tools/late", "[ ! -e tools/late.sh ] || . tools/late.sh",
}

// attackHookSpellings gives each spelling a directory of its own, d1/, d2/ and so on, in the place of tools/.
func attackHookSpellings(t *testing.T, w *world, user, step int) {
	spellings := samples.Of(slices.Concat(hookTable(t, "spellings.txt"), heldHooks, heldHooks), step)
	escaped, ran := filepath.Join(w.root, "escaped"), filepath.Join(w.ws, "ran")
	for _, dir := range []string{escaped, ran} {
		host.Must(t, os.MkdirAll(dir, 0o777))
	}
	var hooks []string
	rewrite := "for name in package.json:json Makefile:make justfile:make json.py:py guard.py:py .venv/bin/black:sh .venv/bin/python:sh; do put 0 . $name; done\n"
	for i, spelling := range spellings {
		dir := fmt.Sprintf("d%d", i+1)
		host.Must(t, os.MkdirAll(filepath.Join(w.ws, dir), 0o755))
		for name, text := range map[string]string{"guard": "#!/bin/sh\nexit 0\n",
			"main": "#!/bin/sh\n. \"$(dirname \"$0\")/lib.sh\"\n", "lib.sh": "true\n", "guard.py": "\n"} {
			host.Must(t, os.WriteFile(filepath.Join(w.ws, dir, name), []byte(text), 0o755))
		}
		hooks = append(hooks, fmt.Sprintf(`{"type":"command","timeout":20,"contained":%v,"command":%s}`, i < len(spellings)-len(heldHooks)/step, quoted(t, strings.NewReplacer("tools", dir, "~/g", "~/g"+dir).Replace(spelling))))
		rewrite += fmt.Sprintf("for name in guard:sh main:sh lib.sh:sh late:sh late.sh:sh guard.py:py json.py:py guard.js:js; do put %d %s $name; done\n", i+1, dir)
	}
	rules := filepath.Join(w.root, "hooks.json")
	host.Must(t, os.WriteFile(rules, []byte(`{"hooks":{"PostToolUse":[{"matcher":"Glob","hooks":[`+strings.Join(hooks, ",\n")+`]}]}}`), 0o644))
	host.Must(t, os.WriteFile(filepath.Join(w.ws, "rewrite.sh"), []byte(fmt.Sprintf(putScript, escaped, ran)+rewrite), 0o755))
	if user != 0 {
		w.giveTo(t, user)
	}
	h := w.host(t, host.StdioModern, "--root", w.ws, "--settings", rules)
	h.call(t, "Bash", `{"command":"bash rewrite.sh 2>/dev/null; true"}`, "rewrite")
	for i := range spellings {
		evil := fmt.Sprintf("#!/bin/sh\ntouch %s/%d\n", escaped, i+1)
		for _, name := range []string{"guard", "lib.sh", "late"} {
			h.call(t, "Write", fmt.Sprintf(`{"file_path":"d%d/%s","content":%s}`, i+1, name, quoted(t, evil)),
				fmt.Sprint(i, name))
		}
	}
	h.call(t, "Bash", `{"command":"for d in d*; do mv $d old-$d && cp -r old-$d $d; done 2>/dev/null; bash rewrite.sh 2>/dev/null; true"}`, "rename")
	h.call(t, "Glob", `{"pattern":"keep.txt"}`, "run")
	for i, spelling := range spellings {
		if exists(filepath.Join(escaped, fmt.Sprint(i+1))) {
			t.Errorf("a file that a command wrote ran outside of the sandbox: %s", spelling)
		}
	}
	if exists(filepath.Join(escaped, "0")) {
		t.Error("a file that all hooks share ran outside of the sandbox")
	}
	entries, err := os.ReadDir(ran)
	host.Must(t, err)
	if len(entries) == 0 { // how many do under load is a matter of time
		t.Error("none of the files that were written ran at all")
	}
	w.before = w.snapshot()
	w.end(t, h)
}

// putScript defines put NUMBER DIRECTORY NAME:KIND, which writes a program that leaves NUMBER in the directory escaped, which
// lies outside of the workspace, and in the directory ran.
const putScript = `put() {
	file=$2/${3%%:*}
	[ -d "${file%%/*}" ] || mkdir -p "${file%%/*}"
	do="touch %s/$1; touch %s/$1"
	case $3 in
	*:sh) printf '#!/bin/sh\n%%s\n' "$do" >"$file" ;;
	*:py) printf 'import os\nos.system("""%%s""")\n' "$do" >"$file" ;;
	*:js) printf 'require("child_process").execSync("%%s")\n' "$do" >"$file" ;;
	*:json) printf '{"name":"x","scripts":{"lint":"%%s"}}\n' "$do" >"$file" ;;
	*:make) printf 'check:\n\t%%s\n' "$do" >"$file" ;;
	esac
	[ -x "$file" ] || chmod +x "$file"
}
`
