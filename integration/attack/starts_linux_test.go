//go:build slow

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

// A way is a script that starts a program by one of testdata/starts.txt, by one of its names.
type way struct {
	name, script string
}

// startForms are names of a program: as it is found in PATH, by its path, and by other names that the test makes.
var startForms = []string{"rm -f VICTIM", "/bin/rm -f VICTIM", "./link -f VICTIM", "./copy -f VICTIM", "./line VICTIM",
	"LOADER /bin/rm -f VICTIM"}

// ways are the ways to remove a file, for as many forms as are wanted.
func ways(t *testing.T, loader string) (all []way) {
	t.Helper()
	raw, err := os.ReadFile("testdata/starts.txt")
	if err != nil {
		t.Fatal(err)
	}
	var texts []string // with their continuations
	for line := range strings.Lines(string(raw)) {
		name, _, ok := strings.Cut(line, "\t")
		switch {
		case strings.HasPrefix(line, "#"):
		case ok && name != "":
			texts = append(texts, line)
		default:
			texts[len(texts)-1] += line
		}
	}
	for _, text := range texts {
		name, script, _ := strings.Cut(text, "\t")
		for _, command := range startForms {
			words := strings.Fields(strings.Replace(command, "LOADER", loader, 1))
			list, _ := json.Marshal(words)
			full := strings.NewReplacer("RUN", strings.Join(words, " "), "LIST", string(list), "PROGRAM", words[0],
				"ARGS", strings.Join(words[1:], " ")).Replace(script)
			if words[0] == "/bin/rm" && command[0] == 'L' {
				continue
			}
			all = append(all, way{name + " " + words[0], full})
		}
	}
	return all
}

// startsGround lays out what the ways use.
func startsGround(t *testing.T) (ws string) {
	t.Helper()
	ws = filepath.Join(host.TempDir(t), "ws")
	host.Must(t, os.MkdirAll(filepath.Join(ws, "keep"), 0o700))
	real, err := exec.LookPath("rm")
	host.Must(t, err)
	content, err := os.ReadFile(real)
	host.Must(t, err)
	host.Must(t, os.WriteFile(filepath.Join(ws, "copy"), content, 0o700))
	host.Must(t, os.Symlink("/bin/rm", filepath.Join(ws, "link")))
	host.Must(t, os.WriteFile(filepath.Join(ws, "start.py"), []byte("import os, sys\nos.execvp('bash', ['bash', sys.argv[1]])\n"), 0o600))
	if out, err := exec.Command("gcc", "-pthread", "-o", filepath.Join(ws, "starts"),
		"testdata/starts.c").CombinedOutput(); err != nil {
		t.Logf("the ways of starts.c are left out: %v %s", err, out)
	}
	return ws
}

// TestAttackStarts starts a denied program from everything that starts programs, and looks at the disk: none runs. With few samples it is
// a sample.
func TestAttackStarts(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	loaders, _ := filepath.Glob("/lib64/ld-linux-*.so.?")
	all := ways(t, strings.Join(loaders[:min(1, len(loaders))], ""))
	ws := startsGround(t)
	home := host.TempDir(t)
	ctx, cancel := host.Patient()
	defer cancel()
	h, err := host.StartHost(ctx, host.StdioModern, ws, host.CleanEnv(home), "--root", ws, "--deny", "Bash(rm:*)")
	host.Must(t, err)
	defer h.Stop()
	worked, refused := 0, 0
	for i, w := range all {
		const sample = 23
		if i%samples.Step(sample) != 0 {
			continue
		}
		if !w.works(t, ws, i) {
			continue
		}
		worked++
		victim := w.lay(t, ws, fmt.Sprint("keep/", i))
		ctx, cancel := host.Patient()
		r, err := h.Call(ctx, "Bash", fmt.Sprintf(`{"command":"python3 start.py %s.sh","timeout":20000}`, victim))
		cancel()
		if err != nil {
			t.Fatalf("%s: %v", w.name, err)
		}
		if _, err := os.Stat(filepath.Join(ws, victim)); err != nil {
			t.Errorf("%s: the denied program ran: %s\n%s", w.name, w.script, r.Text())
		}
		if strings.Contains(r.Text(), "rule Bash(rm:*)") {
			refused++
		} else {
			t.Logf("%s: nothing was said of a refusal: %s", w.name, r.Text())
		}
	}
	t.Logf("%d ways of %d work here; %d were told as refused", worked, len(all), refused)
	if samples.Whole() && worked < 200 {
		t.Errorf("%d ways work here, want 200", worked)
	}
}

// lay writes the script that removes a file, and the file.
func (w way) lay(t *testing.T, ws, victim string) string {
	t.Helper()
	host.Must(t, os.WriteFile(filepath.Join(ws, victim), nil, 0o600))
	host.Must(t, os.WriteFile(filepath.Join(ws, "line"), []byte("#!/bin/rm -f\n"), 0o700)) // which removes itself
	host.Must(t, os.WriteFile(filepath.Join(ws, victim+".sh"), []byte(strings.ReplaceAll(w.script, "VICTIM", filepath.Join(ws, victim))), 0o600))
	return victim
}

// works reports whether a way removes its file where nothing denies it.
func (w way) works(t *testing.T, ws string, i int) bool {
	t.Helper()
	victim := w.lay(t, ws, fmt.Sprint("keep/control", i))
	cmd := exec.Command("timeout", "20", "bash", victim+".sh")
	cmd.Dir = ws
	_ = cmd.Run() // the disk tells
	_, err := os.Stat(filepath.Join(ws, victim))
	return err != nil
}
