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
	for name, target := range map[string]string{"home/x": root + "/tools", "ws/.venv/bin/python": "/bin/sh",
		"home/tool": root + "/tools/guard"} {
		if err := os.Symlink(target, filepath.Join(base, name)); err != nil {
			t.Fatal(err)
		}
	}
	script := filepath.Join(home, "own")
	if err := os.WriteFile(script, []byte("#!"+root+"/.venv/bin/python\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "found"), []byte("#!/usr/bin/env -S -u X tool\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("WORK", root)
	t.Setenv("PATH", home+":/usr/bin:/bin")
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
		{HostCommand{Text: "tool --token x", Dir: "/"}, "tools/guard"},
		{HostCommand{Text: "cd / && exec tool", Dir: "/"}, "tools/guard"},
		{HostCommand{Args: []string{home + "/found"}, Dir: "/"}, "tools/guard"},
		{HostCommand{Args: []string{"/usr/bin/uvx", "server", "--db=" + root + "/data.DB"}, Dir: "/"}, ""},
		{HostCommand{Text: "get-token --to https://example.org/tools/guard", Dir: "/"}, ""},
	} {
		p, err := New(Config{Roots: []string{root}, Home: home, StateDir: filepath.Join(base, "state"),
			Settings: &settings.Settings{}, HostCommands: []HostCommand{tt.line}})
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

// TestHostCommandUnnamed refuses command lines that run or load files of the workspace which they do not name in full: no
// file can be held then. A directory that is data for a program is none that it loads from.
func TestHostCommandUnnamed(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root, own := filepath.Join(base, "ws"), filepath.Join(base, "own.js")
	makeHookWorkspace(t, root)
	for _, name := range []string{own, filepath.Join(root, "tools/index.js")} {
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(root+"/tools", filepath.Join(base, "link")); err != nil {
		t.Fatal(err)
	}
	p, err := New(Config{Roots: []string{root}, Home: base, StateDir: filepath.Join(base, "state"),
		Settings: &settings.Settings{}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		dir     string
		line    string // WS is the root, OWN a script elsewhere
		refused bool
	}{
		{"/", "node WS/tools", true},
		{"/", "node WS/tools/guard.js", false},
		{"/", "node WS/tools/index", true},
		{"/", "node BASE/link/index", true},
		{"/", "node BASE/link/index.js", false},
		{"/", "node --require WS/tools/index OWN", true},
		{"/", "node --require=WS/tools/index OWN", true},
		{"/", "node --title x OWN WS", false},
		{"/", "node OWN WS WS/new.txt", false},
		{"/", "node -e 'require(1)' WS", false},
		{root, "node tools/index", true},
		{root, "node tools/index.js", false},
		{"/", "cd WS && node tools/index", true},
		{"/", "sh -c 'cd WS; exec node tools/index'", true},
		{"/", "python3 WS/tools", true},
		{"/", "python3.12 -m server --repository WS", false},
		{root, "python3 -m server", true},
		{root, "python3 -c 'import server'", true},
		{"/", "ruby -I WS/tools OWN", true},
		{"/", "bash -e WS/tools", true},
		{"/", "bash -c 'true' WS", false},
		{root, "npx -y server", true},
		{"/", "npx -y server WS", false},
		{"/", "npx --package WS server", true},
		{"/", "npx WS", true},
		{"/", "npm --prefix WS start", true},
		{"/", "npm start --prefix=WS", true},
		{"/", "npm run start -- WS", false},
		{"/", "uv --directory WS run server.py", true},
		{"/", "uv run --with mcp --directory WS server.py", true},
		{"/", "uv run --with mcp WS/tools/guard.py WS", false},
		{"/", "uvx --from WS server", true},
		{"/", "uvx server-git --repository WS", false},
		{"/", "bun WS/tools/guard.js WS", false},
		{"/", "bun run WS", true},
		{"/", "git -C WS log", false},
	} {
		line := strings.NewReplacer("WS", root, "OWN", own, "BASE", base).Replace(tt.line)
		err := p.Commands().MayRun(HostCommand{Text: line, Dir: tt.dir})
		if (err != nil) != tt.refused {
			t.Errorf("in %s, %s: %v; want refused: %v", tt.dir, tt.line, err, tt.refused)
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
	p, err := New(Config{Roots: []string{root}, StateDir: filepath.Join(base, "state"),
		HostCommands: []HostCommand{line}})
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
