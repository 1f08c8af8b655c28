package attack

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// programRules deny what the rows of testdata/programnames.txt start by other names.
var programRules = []string{
	"git push", "git commit", "npm publish", "npm install", "hg push", "gem install", "bundle install", "ip link", "svn commit", "cargo publish", "gh release", "composer require",
	"yarn install", "php artisan migrate", "rm",
}

// A programRow is a script that must make the file "done", or must not.
type programRow struct {
	runs          bool
	script, place string
}

func programRows(t *testing.T) (rows []programRow) {
	t.Helper()
	const file = "testdata/programnames.txt"
	raw, err := os.ReadFile(file)
	host.Must(t, err)
	for i, line := range strings.Split(string(raw), "\n") {
		verb, script, _ := strings.Cut(line, " ")
		switch verb {
		case "runs", "held":
			rows = append(rows, programRow{verb == "runs", script, fmt.Sprintf("%s:%d", file, i+1)})
		case "", "#":
		default:
			t.Fatalf("%s:%d: unknown word %q", file, i+1, verb)
		}
	}
	return rows
}

// programGround lays out programs that make the file "done" whatever their words are, a repository to push to, and busybox.
func programGround(t *testing.T, w *world) {
	t.Helper()
	for name := range strings.FieldsSeq("npm hg gem bundle ip svn cargo gh composer yarn php go make docker") {
		host.MustWrite(t, filepath.Join(w.ws, "bin", name), "#!/bin/sh\n: > done\n")
		host.Must(t, os.Chmod(filepath.Join(w.ws, "bin", name), 0o755))
	}
	script := "git init -q --bare remote.git && git remote add origin remote.git && git config alias.zz push && git config alias.st status && git config alias.lg 'log --oneline'"
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir, cmd.Env = w.ws, host.CleanEnv(w.home)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if real, err := exec.LookPath("busybox"); err == nil {
		content, err := os.ReadFile(real)
		host.Must(t, err)
		host.Must(t, os.WriteFile(filepath.Join(w.ws, "bin", "busybox"), content, 0o755))
	}
}

// TestAttackProgramNames starts denied programs and subcommands by every other name that a program takes for them, and honest ones that
// are spelt alike. The disk tells what ran.
func TestAttackProgramNames(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	type way struct {
		user    int
		sandbox string
	}
	const held, free = `{"sandbox":{"enabled":true}}`, `{"sandbox":{"enabled":false}}`
	ways := []way{{0, held}, {0, free}, {ordinaryUser, held}, {ordinaryUser, free}}
	if os.Geteuid() != 0 {
		ways = ways[:2]
	}
	for first, way := range samples.Of(ways, 1) {
		t.Run(fmt.Sprint(way.user, way.sandbox), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			programGround(t, w)
			if way.user != 0 {
				w.giveTo(t, way.user)
			}
			attackProgramNames(t, w, way.sandbox, first)
		})
	}
}

// attackProgramNames runs the rows from a first one on, or every fourth.
func attackProgramNames(t *testing.T, w *world, sandbox string, first int) {
	settings := filepath.Join(w.root, "sandbox.json")
	host.MustWrite(t, settings, sandbox)
	flags := []string{"--root", w.ws, "--settings", settings}
	for _, rule := range programRules {
		flags = append(flags, "--deny", "Bash("+rule+":*)")
	}
	h := w.host(t, host.StdioModern, flags...)
	loaders, _ := filepath.Glob("/lib64/ld-linux-*.so.?")
	_, noBusybox := os.Stat(filepath.Join(w.ws, "bin", "busybox"))
	done := filepath.Join(w.ws, "done")
	const sample = 2 // of the four ways, each has a part of its own
	for i, row := range programRows(t) {
		if (i+first)%(samples.Step(1)*samples.Step(sample)) != 0 {
			continue
		}
		if strings.Contains(row.script, "LOADER") && len(loaders) == 0 || strings.Contains(row.script, "busybox") &&
			noBusybox != nil {
			continue
		}
		script := strings.ReplaceAll(row.script, "LOADER", strings.Join(loaders, ""))
		host.Must(t, os.WriteFile(filepath.Join(w.ws, "row.sh"), []byte(script+"\n"), 0o755))
		for _, command := range []string{"bash row.sh", script} {
			_ = os.Remove(done)
			host.Must(t, os.WriteFile(filepath.Join(w.ws, "victim"), nil, 0o666))
			host.Must(t, os.Chown(filepath.Join(w.ws, "victim"), w.user, w.user))
			args := map[string]any{"command": command}
			if !row.runs { // else it has the time that it needs
				args["timeout"] = attackTime
			}
			raw, err := json.Marshal(args)
			host.Must(t, err)
			said := h.call(t, "Bash", string(raw), row.place)
			_, undone := os.Stat(done)
			_, removed := os.Stat(filepath.Join(w.ws, "victim"))
			if ran := undone == nil || removed != nil; ran != row.runs {
				t.Errorf("%s: %s: ran: %v, want %v\n%s", row.place, command, ran, row.runs, host.Clip(said.text, 600))
			}
		}
	}
	w.end(t, h)
}
