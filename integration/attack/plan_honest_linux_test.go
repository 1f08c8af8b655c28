package attack

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// A planBuild is honest work that runs as commands in plan mode.
type planBuild struct {
	name  string
	needs string // a program
	files map[string]string
	// commands run one after another in one conversation. $CACHE is what the go command has built before, which they may write.
	commands []string
}

var planBuilds = []planBuild{
	{"make", "make", map[string]string{
		"Makefile": "all: out/a out/b\nout/%: %.txt\n\tmkdir -p out\n\tsort $< > $@\nclean:\n\trm -rf out\n", "a.txt": "2\n1\n", "b.txt": "x\n",
	}, []string{"make", "touch a.txt && make && cat out/a", "make -s clean && ls && make -j4 2>&1 | sort"}},
	{"git", "git", map[string]string{"a": "1\n", "b/c": "2\n", ".envrc": "x\n"}, []string{
		"git init -q . && git add -A && git commit -qm one && git status --short",
		"git switch -qc side && echo 3 >> a && git mv b/c b/d && git rm -q .envrc && git commit -qam two && git switch -q - && cat a && ls -A",
		"git merge -q side && git stash list && echo 4 >> a && git stash -q && git stash pop -q && git diff --stat && git checkout -q -- a && git status --short",
		"git rebase -q side && git cherry-pick --no-commit HEAD~0 2>&1 | tail -1; git reset -q --hard HEAD~1 && git clean -qfd && git log --format=%s && ls -A",
	}},
	{"sqlite", "sqlite3", nil, []string{
		`sqlite3 x.db 'pragma journal_mode=wal; create table t (a); insert into t values (1), (2)'`,
		`sqlite3 x.db 'begin; insert into t values (3); commit; select sum(a) from t; vacuum; pragma integrity_check'`,
	}},
	{"files", "tar", map[string]string{"d/a": "1\n", "d/e/f": "2\n", "run.sh": "#!/bin/sh\necho ran\n"}, []string{
		"tar cf t.tar d && rm -rf d && tar xf t.tar && find d | sort", "cp -r d d2 && mv d d3 && mv d3/e . && find . -type f | sort",
		"chmod +x run.sh && ./run.sh && sed -i s/1/one/ d2/a && cat d2/a", "ln d2/a hard && echo two >> hard && cat d2/a && ln -s d2 l && cat l/a",
		"rm -rf d2 && mkdir d2 && ls -A d2 && (cd d3 && pwd | sed 's/.*ws/ws/')",
	}},
	{"python", "python3", map[string]string{
		"m.py":      "def f():\n    return 1\n",
		"test_m.py": "import os, tempfile, unittest, m\nclass T(unittest.TestCase):\n    def test_f(self):\n        self.assertEqual(m.f(), 1)\n        open('made', 'w').write(tempfile.mkdtemp()[:5])\n",
	}, []string{
		"python3 -m unittest -q 2>&1 | grep -v Ran; cat made; echo", "if python3 -m pytest --version >/dev/null 2>&1; then python3 -m pytest -q 2>&1 | sed 's/ in .*//'; fi",
		"python3 -m compileall -q . && ls __pycache__ | wc -l",
	}},
}

// TestPlanHonest runs honest work in plan mode and plainly: it prints the same and makes the same files, and the
// workspace stays as it is.
func TestPlanHonest(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	for _, b := range samples.Of(planBuilds, 1) {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(b.needs); err != nil {
				t.Skipf("no %s here", b.needs)
			}
			b.compare(t)
		})
	}
}

// sumFiles prints every file but those in which times are stored.
const sumFiles = `find . -path ./.git -prune -o -path '*/__pycache__' -prune -o -name '*.tar' -o -type f -print | LC_ALL=C sort | xargs -r -d '\n' sha256sum`

// notes matches what the host adds to a result.
var notes = regexp.MustCompile(`(?ms)\n*^\[Plan mode: .*\]\s*\z`)

func (b planBuild) compare(t *testing.T) {
	w := newWorld(t)
	lay := func(dir string) {
		host.Must(t, os.RemoveAll(dir))
		host.Must(t, os.MkdirAll(dir, 0o755))
		for name, text := range b.files {
			host.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
			host.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
		}
	}
	cache := "[]"
	if b.needs == "go" {
		out, err := exec.Command("go", "env", "GOCACHE").Output()
		host.Must(t, err)
		cache = `["` + strings.TrimSpace(string(out)) + `"]`
	}
	var commands []string
	for _, command := range append(slices.Clone(b.commands), sumFiles) {
		commands = append(commands, strings.ReplaceAll(command, "$CACHE", strings.Trim(cache, `[]"`)))
	}
	lay(w.ws)
	plain := w.plainly(t, commands)
	lay(w.ws) // under the same name, which programs print
	before := everything(t, w.ws)
	planned := filepath.Join(w.root, "patient.json") // a busy machine compiles for longer than a call waits
	host.MustWrite(t, planned, `{"permissions":{"defaultMode":"plan"},"sandbox":{"filesystem":{"allowWrite":`+cache+`}},"bash":{"defaultTimeout":"9m","foregroundWindow":"9m"}}`)
	h := w.host(t, host.StdioModern, "--root", w.ws, "--settings", planned)
	for i, command := range commands {
		said := h.callWithin(t, 10*time.Minute, "Bash", fmt.Sprintf(`{"command":%s}`, quoted(t, command)), b.name)
		if got := strings.TrimSpace(notes.ReplaceAllString("\n"+said.text, "")); got != plain[i] {
			t.Errorf("%s\n in the plan: %s\n plainly: %s", command, got, plain[i])
		}
	}
	w.end(t, h)
	if diff := cmp.Diff(before, everything(t, w.ws)); diff != "" {
		t.Errorf("the plan changed the workspace (-before +after):\n%s", diff)
	}
}

// plainly runs commands in one shell and returns what each prints.
func (w *world) plainly(t *testing.T, commands []string) (printed []string) {
	t.Helper()
	for _, command := range commands {
		cmd := exec.Command("bash", "-c", command)
		cmd.Dir, cmd.Env = w.ws, host.CleanEnv(w.home)
		out, err := cmd.CombinedOutput()
		text := strings.TrimSpace(string(out))
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		if text == "" {
			text = "(no output)"
		}
		printed = append(printed, text)
	}
	return printed
}

// everything describes all that lies below a directory.
func everything(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	host.Must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := fmt.Sprint(info.Mode(), info.ModTime())
		if info.Mode().IsRegular() {
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += string(raw)
		}
		all[path] = text
		return nil
	}))
	return all
}
