//go:build linux

package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFaultDamagedState damages what a host keeps. Nothing that can be recovered is lost, and doctor and the log tell.
func TestFaultDamagedState(t *testing.T) {
	g := newGround(t)
	path := g.put("f.txt", "0\n")
	s := g.start(stdioModern)
	s.call("Read", args{"file_path": path})
	for _, content := range []string{"1\n", "2\n", "3\n"} {
		s.call("Write", args{"file_path": path, "content": content})
	}
	kept := s.call("Bash", args{"command": "seq 100000"})
	result := filepath.Join(g.state, "results")
	_, after, found := strings.Cut(kept, result)
	if !found {
		t.Fatalf("no result was kept: %s", kept)
	}
	result += after[:strings.Index(after, ".txt")+len(".txt")]
	s.end()
	before := g.changes()
	indexes, err := filepath.Glob(filepath.Join(g.state, "history", "*", "index"))
	if err != nil || len(indexes) != 1 || len(before) != 3 {
		t.Fatalf("%q, %v, %+v", indexes, err, before)
	}
	must(t, os.WriteFile(indexes[0], make([]byte, 1000), 0o600))
	must(t, os.WriteFile(filepath.Join(g.state, "secret"), make([]byte, 32), 0o600))
	must(t, os.WriteFile(filepath.Join(g.state, "results", "key"), make([]byte, 32), 0o600))

	report, log := g.doctor()
	for _, want := range []string{"the index of the changes of", "all its bytes are the same", "the key of kept results was damaged"} {
		if !strings.Contains(report, want) {
			t.Errorf("doctor says nothing of %q:\n%s", want, report)
		}
	}
	if !strings.Contains(log, "the key of kept results was damaged") || !strings.Contains(log, "cannot store the key of session handles") {
		t.Errorf("the log: %s", log)
	}
	if got := g.changes(); len(got) != 3 || got[0].ID != before[0].ID {
		t.Errorf("%+v, before %+v", got, before)
	}
	g.toolhost("undo", before[0].ID)
	if got := get(t, path); got != "2\n" {
		t.Errorf("undone: %q", got)
	}
	s = g.start(stdioModern)
	if text := s.call("Read", args{"file_path": result, "offset": 50_000, "limit": 1}); !strings.Contains(text, "50000") {
		t.Errorf("the result that was kept before: %s", text)
	}
	s.end()
	if report, _ := g.doctor(); !strings.Contains(report, "what could not be read is in") {
		t.Errorf("doctor does not tell that the history was damaged:\n%s", report)
	}
	if out := g.toolhost("history", "usage"); !strings.Contains(out, "local") {
		t.Errorf("usage: %s", out)
	}
}

// doctor returns what doctor prints and what it logs.
func (g *ground) doctor() (out, log string) {
	var printed, logged strings.Builder
	cmd := exec.Command(binary, "doctor", "--state-dir", g.state)
	cmd.Env, cmd.Dir = cleanEnv(g.home), g.ws
	cmd.Stdout, cmd.Stderr = &printed, &logged
	_ = cmd.Run() // what it says is looked at
	return printed.String(), logged.String()
}
