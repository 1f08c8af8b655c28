//go:build unix

package guard

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/guard/settings"
)

// TestHostCommandFiles finds the files of the workspace that command lines of the host name: they are protected, and a
// changed one is not run.
func TestHostCommandFiles(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root, home := filepath.Join(base, "ws"), filepath.Join(base, "home")
	makeHookWorkspace(t, root)
	if err := os.MkdirAll(home, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"home/x": root + "/tools", "ws/.venv/bin/python": "/bin/sh", "home/tool": root + "/tools/guard"} {
		if err := os.Symlink(target, filepath.Join(base, name)); err != nil {
			t.Fatal(err)
		}
	}
	script := filepath.Join(home, "own")
	if err := os.WriteFile(script, []byte("#!"+root+"/.venv/bin/python\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("WORK", root)
	for _, tt := range []struct {
		line HostCommand
		want string
	}{
		{HostCommand{Args: []string{"/usr/bin/node", "tools/guard.js"}, Dir: root}, "tools/guard.js"},
		{HostCommand{Args: []string{"/usr/bin/node", "tools/guard.js"}, Dir: home}, ""},
		{HostCommand{Args: []string{"/usr/bin/node", root + "/tools/guard.js", "--config=data.json"}, Dir: root}, "data.json tools/guard.js"},
		{HostCommand{Args: []string{root + "/node_modules/.bin/eslint", "--stdio"}, Dir: "/"}, "node_modules/.bin/eslint"},
		{HostCommand{Args: []string{root + "/.venv/bin/python", "-m", "x"}, Dir: "/"}, ".venv/bin/python"},
		{HostCommand{Args: []string{root + "/tools/pyenv"}, Dir: "/"}, ".venv/bin/python tools/pyenv"},
		{HostCommand{Args: []string{script}, Dir: "/"}, ".venv/bin/python"},
		{HostCommand{Args: []string{home + "/x/guard"}, Dir: "/"}, "tools/guard"},
		{HostCommand{Args: []string{home + "/tool"}, Dir: "/"}, "tools/guard"},
		{HostCommand{Args: []string{"/bin/sh", "-c", "cd /; exec " + root + "/tools/guard -x"}, Dir: "/"}, "tools/guard"},
		{HostCommand{Args: []string{"/usr/bin/git", "-C", root}, Dir: root}, ""},
		{HostCommand{Text: "$WORK/tools/guard | ${WORK}/tools/guard.py", Dir: "/"}, "tools/guard tools/guard.py"},
		{HostCommand{Text: "cd tools && ./guard", Dir: root}, "tools/guard"},
		{HostCommand{Args: []string{"/bin/sh", "-c", "cd $WORK/tools && exec ./guard"}, Dir: "/"}, "tools/guard"},
		{HostCommand{Text: `"` + root + `/tools/gua"rd`, Dir: "/"}, "tools/guard"},
		{HostCommand{Text: "~/tool --token x", Dir: "/"}, "tools/guard"},
		{HostCommand{Text: "tools/guard </dev/null", Dir: root}, "tools/guard"},
		{HostCommand{Text: "get-token --to https://example.org/tools/guard", Dir: "/"}, ""},
	} {
		p, err := New(Config{Roots: []string{root}, Home: home, StateDir: filepath.Join(base, "state"), Settings: &settings.Settings{}, HostCommands: []HostCommand{tt.line}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, place := range tt.line.files(p.data) {
			name, _ := filepath.Rel(root, place.Given)
			if real, err := filepath.Rel(root, place.Real); err == nil && !filepath.IsLocal(name) {
				name = real
			}
			got = append(got, name)
		}
		slices.Sort(got)
		if got := strings.Join(slices.Compact(got), " "); got != tt.want {
			t.Errorf("%+v names %q, want %q", tt.line, got, tt.want)
		}
		for _, name := range strings.Fields(tt.want) {
			path, err := p.Resolve(filepath.Join(root, name))
			if err != nil {
				t.Fatal(err)
			}
			v := p.Judge(Intent{Tool: "Write", Effects: []Effect{Write{Path: path}}})
			if real := path.Real(); strings.HasPrefix(real, root) && (v.Action != Ask || !v.Final) {
				t.Errorf("%+v: writing %s is %v, want ask: %v", tt.line, name, v.Action, v)
			}
			if !slices.Contains(p.Commands().SandboxPaths().ReadOnly, filepath.Join(root, name)) {
				t.Errorf("%+v: commands can write %s", tt.line, name)
			}
		}
	}
}

// TestMayRun runs a file again after a person approved its writing, and not after anything else changed it.
func TestMayRun(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(base, "ws")
	makeHookWorkspace(t, root)
	line := HostCommand{Text: root + "/tools/guard", Dir: "/"}
	p, err := New(Config{Roots: []string{root}, StateDir: filepath.Join(base, "state"), HostCommands: []HostCommand{line}})
	if err != nil {
		t.Fatal(err)
	}
	if problems := p.Commands().CheckHostCommands(); len(problems) > 0 {
		t.Error(problems)
	}
	file := filepath.Join(root, "tools/guard")
	if err := os.WriteFile(file, []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := p.Commands().MayRun(line); err == nil || !strings.Contains(err.Error(), "toolhost trust '"+file) {
		t.Errorf("a changed file: %v", err)
	}
	path, err := p.Resolve(root + "/linked/guard")
	if err == nil {
		err = p.Commands().Agreed(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Commands().MayRun(line); err != nil {
		t.Errorf("an approved file: %v", err)
	}
}
