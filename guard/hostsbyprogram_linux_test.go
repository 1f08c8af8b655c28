package guard

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/guard/hostprogram"
	"github.com/toolhost/toolhost/guard/sandbox/connectgate"
	"github.com/toolhost/toolhost/guard/settings"
)

func TestProgramReaches(t *testing.T) {
	ws := t.TempDir()
	hostprogram.Distrust(ws)
	python := string(output(t, "python3", "-c", `import os; print(os.readlink("/proc/self/exe"), end="")`))
	node := realProgram(t, "node")
	git := filepath.Join(strings.TrimSpace(string(output(t, "git", "--exec-path"))), "git-remote-https")
	bad := filepath.Join(ws, "git")
	if err := os.WriteFile(bad, []byte("x"), 0o755); err != nil {
		t.Fatal(err)
	}
	set := &settings.Settings{}
	for _, text := range []string{"git: github.com", "npm: registry.npmjs.org:443", "python3: *.pypi.org",
		"python3: localhost:5432", "node: *", "psql: db.test"} {
		set.Sandbox.Network.Programs = append(set.Sandbox.Network.Programs, settings.Entry{Text: text})
	}
	p, err := New(Config{Roots: []string{ws}, Settings: set})
	if err != nil {
		t.Fatal(err)
	}
	program := func(path string, args ...string) connectgate.Program {
		return connectgate.Program{Path: path, Args: args}
	}
	npm := lookUp(t, "npm")
	for _, c := range []struct {
		program    connectgate.Program
		host, port string
		name       string
		reaches    bool
	}{
		{program(git, "git-remote-https", "origin"), "github.com", "443", "git", true},
		{program(git, "git-remote-https", "origin"), "example.com", "443", "git", false},
		{program(bad, "git"), "github.com", "443", "", false},
		{program("", "git"), "github.com", "443", "", false},
		{program(node, "npm install left-pad"), "registry.npmjs.org", "443", "npm", true},
		{program(node, "npm install left-pad"), "registry.npmjs.org", "80", "npm", false},
		{program(node, "node", npm, "install"), "registry.npmjs.org", "443", "npm", true},
		{program(node, "node", filepath.Join(ws, "npm"), "install"), "other.test", "443", "node", true},
		{program(node, "node", "build.js", npm), "other.test", "443", "node", true},
		{program(node, "node", "-e", npm), "other.test", "443", "node", true},
		{program(node, "node"), "10.0.0.1", "443", "node", false}, // a wildcard is of names
		{program(node, "node"), "localhost", "443", "node", false},
		{program(node, "git"), "github.com", "443", "node", true}, // no other interpreter's, nor a binary
		{program(python, "npm install"), "registry.npmjs.org", "443", filepath.Base(python), false},
		{program(python, "python3", "manage.py"), "files.pypi.org", "443", filepath.Base(python), true},
		{program(python, "python3", "manage.py"), "localhost", "5432", filepath.Base(python), true},
		{program(python, "python3", "manage.py"), "localhost", "5433", filepath.Base(python), false},
	} {
		if got := p.Commands().ProgramName(c.program); got != c.name {
			t.Errorf("%v: named %q, want %q", c.program, got, c.name)
		}
		if got := p.Commands().ProgramReaches(c.program, c.host, c.port); got != c.reaches {
			t.Errorf("%v reaches %s:%s: %t", c.program, c.host, c.port, got)
		}
	}
	set.Sandbox.Network.Programs = []settings.Entry{{Text: "git: https://github.com/", File: "f", Line: 3}}
	if p, err = New(Config{Roots: []string{ws}, Settings: set}); err != nil || len(p.Warnings()) != 1 ||
		!strings.Contains(p.Warnings()[0], "git reaches no further host") {
		t.Errorf("warnings %q, %v", p.Warnings(), err)
	}
}

func output(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		t.Skip(err)
	}
	return out
}

func lookUp(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip(err)
	}
	return path
}

// realProgram returns the file of an installed program.
func realProgram(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(lookUp(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}
