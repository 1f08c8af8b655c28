//go:build linux

package fault

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/testenv"
)

// TestFaultDamagedState damages what a host keeps. Nothing that can be recovered is lost, and doctor and the log tell.
func TestFaultDamagedState(t *testing.T) {
	testenv.NeedsNamespaces(t)
	g := newGround(t)
	path := g.Put("f.txt", "0\n")
	s := g.start(host.StdioModern)
	s.MustCall("Read", host.Args{"file_path": path})
	for _, content := range []string{"1\n", "2\n", "3\n"} {
		s.MustCall("Write", host.Args{"file_path": path, "content": content})
	}
	kept := s.MustCall("Bash", host.Args{"command": "seq 100000"})
	result := filepath.Join(g.State, "results")
	_, after, found := strings.Cut(kept, result)
	if !found {
		t.Fatalf("no result was kept: %s", kept)
	}
	result += after[:strings.Index(after, ".txt")+len(".txt")]
	s.End()
	before := g.changes()
	indexes, err := filepath.Glob(filepath.Join(g.State, "history", "*", "index"))
	if err != nil || len(indexes) != 1 || len(before) != 3 {
		t.Fatalf("%q, %v, %+v", indexes, err, before)
	}
	host.Must(t, os.WriteFile(indexes[0], make([]byte, 1000), 0o600))
	host.Must(t, os.WriteFile(filepath.Join(g.State, "secret"), make([]byte, 32), 0o600))

	report, log := g.doctor()
	for _, want := range []string{"the index of the changes of", "all its bytes are the same"} {
		if !strings.Contains(report, want) {
			t.Errorf("doctor says nothing of %q:\n%s", want, report)
		}
	}
	if !strings.Contains(log, "cannot store the key of session handles") {
		t.Errorf("the log: %s", log)
	}
	if got := g.changes(); len(got) != 3 || got[0].ID != before[0].ID {
		t.Errorf("%+v, before %+v", got, before)
	}
	g.toolhost("undo", before[0].ID)
	if got := host.Get(t, path); got != "2\n" {
		t.Errorf("undone: %q", got)
	}
	s = g.start(host.StdioModern)
	if text := s.MustCall("Read", host.Args{"file_path": result, "offset": 50_000, "limit": 1}); !strings.Contains(text,
		"50000") {
		t.Errorf("the result that was kept before: %s", text)
	}
	s.End()
	if report, _ := g.doctor(); !strings.Contains(report, "what could not be read is in") {
		t.Errorf("doctor does not tell that the history was damaged:\n%s", report)
	}
	if out := g.toolhost("history", "usage"); !strings.Contains(out, "local") {
		t.Errorf("usage: %s", out)
	}
}

// doctor returns what doctor prints, and the warnings that it logs when it is told to.
func (g *ground) doctor() (out, log string) {
	var printed, logged strings.Builder
	cmd := exec.Command(host.Binary, "doctor", "--quick", "--log-level", "warn", "--state-dir", g.State)
	cmd.Env, cmd.Dir = host.CleanEnv(g.Home), g.WS
	cmd.Stdout, cmd.Stderr = &printed, &logged
	_ = cmd.Run() // what it says is looked at
	return printed.String(), logged.String()
}
