//go:build unix

package gateway

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/guard/hostprogram"
)

// TestOutside decides which program a server runs and where, in the sandbox and outside of it.
func TestOutside(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root, nvm := filepath.Join(base, "ws"), filepath.Join(base, ".nvm/v22/bin")
	for _, name := range []string{root + "/.venv/bin/npx", root + "/.venv/bin/only", root + "/tools/server.js", root +
		"/server.py", nvm + "/npx", nvm + "/node"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	hostprogram.Distrust(root)
	t.Setenv("PATH", root+"/.venv/bin:"+nvm+":/usr/bin:/bin")
	no := false
	for _, tt := range []struct {
		name         string
		entry        Entry
		program, dir string
		wrong        string // the error
	}{
		{"npx from nvm", Entry{Command: "npx", Args: []string{"-y", "@scope/server"}, Sandbox: &no}, nvm + "/npx", "", ""},
		{"npx in the sandbox", Entry{Command: "npx", Args: []string{"-y", "x"}}, root + "/.venv/bin/npx", root, ""},
		{"only in the root", Entry{Command: "only", Sandbox: &no}, "", "", root + "/.venv/bin/only. Install it outside of the workspace, or give its absolute path in your own settings"},
		{"nowhere", Entry{Command: "nowhere", Sandbox: &no}, "", "", "its command nowhere was not found in PATH: install it, or give its absolute path in your own settings"},
		{"only in the root, in the sandbox", Entry{Command: "only"}, root + "/.venv/bin/only", root, ""},
		{"named by its path", Entry{Command: root + "/.venv/bin/only", Sandbox: &no}, root + "/.venv/bin/only", "", ""},
		{"a script of the root", Entry{Command: "node", Args: []string{"tools/server.js"}, Sandbox: &no}, nvm + "/node", root, ""},
		{"a script by its path", Entry{Command: "node", Args: []string{root + "/tools/server.js"}, Sandbox: &no}, nvm + "/node", "", ""},
		{"a directory of its own", Entry{Command: "node", Args: []string{"server.js"}, Cwd: base, Sandbox: &no}, nvm + "/node", base, ""},
		{"a directory in the root", Entry{Command: "node", Args: []string{"server.js"}, Cwd: root + "/tools", Sandbox: &no}, nvm + "/node", root + "/tools", ""},
		{"npx on the root", Entry{Command: "npx", Args: []string{"-y", "x", "."}, Sandbox: &no}, nvm + "/npx", root, ""},
		{"a word that is a directory's name", Entry{Command: "npx", Args: []string{"-y", "x", "tools"}, Sandbox: &no}, nvm + "/npx", "", ""},
		{"a project's entry stays in the sandbox", Entry{Command: "only", Sandbox: &no}, root + "/.venv/bin/only", root, ""},
	} {
		if tt.entry.Trust = User; strings.HasPrefix(tt.name, "a project's") {
			tt.entry.Trust = Project
		}
		program, err := tt.entry.program()
		dir := ""
		if err == nil && program == tt.program {
			dir = tt.entry.workDir([]string{root})
		}
		switch {
		case tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)):
			t.Errorf("%s: got %q, %v; want the error %q", tt.name, program, err, tt.wrong)
		case tt.wrong == "" && (err != nil || program != tt.program || dir != tt.dir):
			t.Errorf("%s: %q in %q, %v; want %q in %q", tt.name, program, dir, err, tt.program, tt.dir)
		}
	}
	env := strings.Join(serverEnv(&Entry{Sandbox: &no, Trust: User}), "\n")
	if strings.Contains(env, root) || !strings.Contains(env, nvm) {
		t.Errorf("the environment outside of the sandbox is %s", env)
	}
}
