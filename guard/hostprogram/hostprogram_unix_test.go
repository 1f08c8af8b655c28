//go:build unix

package hostprogram

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A scene has a root, in which commands write, and a directory that is the user's own.
type scene struct {
	t               *testing.T
	dir, root, mine string
}

func newScene(t *testing.T) *scene {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{t, dir, filepath.Join(dir, "ws"), filepath.Join(dir, "mine")}
	for _, d := range []string{s.root, s.mine} {
		must(t, os.Mkdir(d, 0o755))
	}
	Distrust(s.root)
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// program writes an executable file that prints its own path, and returns the path.
func (s *scene) program(name string) string { return s.script(name, "#!/bin/sh\necho "+name+"\n") }

func (s *scene) script(name, text string) string {
	s.t.Helper()
	file := filepath.Join(s.dir, name)
	must(s.t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(s.t, os.WriteFile(file, []byte(text), 0o755))
	return file
}

func (s *scene) link(target, name string) string {
	s.t.Helper()
	must(s.t, os.MkdirAll(filepath.Join(s.dir, filepath.Dir(name)), 0o755))
	must(s.t, os.Symlink(target, filepath.Join(s.dir, name)))
	return filepath.Join(s.dir, name)
}

// path joins entries of a PATH, relative ones to the scene's directory. Those that begin with "=" are taken as they
// are.
func (s *scene) path(entries ...string) string {
	var dirs []string
	for _, e := range entries {
		if rest, ok := strings.CutPrefix(e, "="); ok {
			dirs = append(dirs, rest)
		} else {
			dirs = append(dirs, filepath.Join(s.dir, e))
		}
	}
	return strings.Join(dirs, ":")
}

// TestFind plants a program in each way that commands have, and looks for it: the honest one in the last entry is
// found.
func TestFind(t *testing.T) {
	for name, plant := range map[string]func(s *scene) (path string){
		"a directory of the root": func(s *scene) string { s.program("ws/.venv/bin/tool"); return s.path("ws/.venv/bin", "honest") },
		"the root itself":         func(s *scene) string { s.program("ws/tool"); return s.path("ws", "honest") },
		"dots": func(s *scene) string {
			s.program("ws/b/tool")
			return s.path("="+s.dir+"/mine/../ws/./b") + ":" + s.path("honest")
		},
		"dots after a link": func(s *scene) string {
			s.program("ws/tool")
			must(s.t, os.Mkdir(s.root+"/sub", 0o755))
			s.link(s.root+"/sub", "mine/l")
			return "=" + s.dir + "/mine/l/.." + ":" + s.path("honest")
		},
		"a link to a directory of the root": func(s *scene) string {
			s.program("ws/bin/tool")
			s.link(s.root+"/bin", "mine/bin")
			return s.path("mine/bin", "honest")
		},
		"a relative link above": func(s *scene) string {
			s.program("ws/bin/tool")
			s.link("../ws", "mine/l")
			return s.path("mine/l/bin", "honest")
		},
		"a chain of links": func(s *scene) string {
			s.program("ws/bin/tool")
			s.link("../ws", "mine/a")
			s.link("a/bin", "mine/b")
			return s.path("mine/b", "honest")
		},
		"through the root and out of it": func(s *scene) string {
			s.program("mine/bin/tool")
			s.link(s.mine+"/bin", "ws/out")
			return s.path("ws/out", "honest")
		},
		"a link file": func(s *scene) string {
			s.link(s.program("ws/x"), "mine/tool")
			return s.path("mine", "honest")
		},
		"a link file over another": func(s *scene) string {
			s.program("ws/x")
			s.link("../ws/x", "mine/y")
			s.link("y", "mine/tool")
			return s.path("mine", "honest")
		},
		"a hard link": func(s *scene) string {
			must(s.t, os.Link(s.program("ws/deep/down/x"), s.mine+"/tool"))
			return s.path("mine", "honest")
		},
		"an interpreter in the root": func(s *scene) string {
			s.script("mine/tool", "#!"+s.program("ws/python")+"\n")
			return s.path("mine", "honest")
		},
		"an interpreter by a link": func(s *scene) string {
			s.link(s.program("ws/python"), "mine/python")
			s.script("mine/tool", "#! "+s.mine+"/python -I\n")
			return s.path("mine", "honest")
		},
		"an interpreter by env": func(s *scene) string {
			s.script("mine/tool", "#!/usr/bin/env -S X=1 "+s.program("ws/python")+"\n")
			return s.path("mine", "honest")
		},
		"an interpreter that env finds": func(s *scene) string {
			s.link(s.program("ws/python"), "mine/python")
			s.t.Setenv("PATH", s.path("mine"))
			s.script("mine/tool", "#!/usr/bin/env -S -u X python -I\n")
			return s.path("mine", "honest")
		},
		"an interpreter of an interpreter": func(s *scene) string {
			s.script("mine/python", "#!"+s.program("ws/python")+"\n")
			s.script("mine/tool", "#!"+s.mine+"/python\n")
			return s.path("mine", "honest")
		},
		"a relative interpreter": func(s *scene) string {
			s.script("mine/tool", "#!python\n")
			return s.path("mine", "honest")
		},
		"an empty entry": func(s *scene) string {
			s.program("ws/tool")
			s.t.Chdir(s.root)
			return ":" + s.path("honest") + ":"
		},
		"a relative entry": func(s *scene) string {
			s.program("ws/bin/tool")
			s.t.Chdir(s.root)
			return s.path("=bin", "=./bin", "=.", "honest")
		},
		"a relative entry elsewhere": func(s *scene) string {
			s.program("mine/bin/tool")
			s.t.Chdir(s.mine)
			return s.path("=bin", "honest")
		},
		"a file that commands may write": func(s *scene) string {
			Distrust(s.program("mine/tool"))
			return s.path("mine", "honest")
		},
		"a directory that is named later": func(s *scene) string {
			s.program("mine/bin/tool")
			path := s.path("mine/bin", "honest")
			if file, err := FindIn("tool", path); err != nil || file != s.mine+"/bin/tool" {
				s.t.Fatal(file, err)
			}
			Distrust(s.mine)
			return path
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			honest := s.program("honest/tool")
			path := strings.TrimPrefix(plant(s), "=")
			for range 2 { // looked for, and known
				if got, err := FindIn("tool", path); err != nil || got != honest {
					t.Errorf("FindIn(%q) = %q, %v; want %q", path, got, err, honest)
				}
			}
			kept, _ := nowWritable().entries(path)
			out, err := (&exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", "command -v tool"},
				Env: Clean([]string{"PATH=" + path}), Dir: s.root}).Output()
			if shown := strings.TrimSpace(string(out)); Exposed(shown) && !strings.HasPrefix(shown, s.mine) {
				t.Errorf("a shell with PATH=%s finds %s (%v)", kept, shown, err)
			}
			os.Remove(honest)
			_, err = FindIn("tool", path)
			if !errors.Is(err, exec.ErrNotFound) || !strings.Contains(err.Error(), "skipped") ||
				!strings.Contains(err.Error(), "/tool") {
				t.Errorf("the error does not say what was skipped: %v", err)
			}
		})
	}
}

// TestFindHonest finds programs that no command writes, wherever they lie.
func TestFindHonest(t *testing.T) {
	for name, put := range map[string]func(s *scene) (path, want string){
		"a wrapper": func(s *scene) (string, string) { return s.path("mine"), s.program("mine/tool") },
		"a link": func(s *scene) (string, string) {
			s.program("mine/v2/tool")
			return s.path("mine"), s.link("v2/tool", "mine/tool")
		},
		"a linked entry": func(s *scene) (string, string) {
			s.program("mine/v2/tool")
			s.link("v2", "mine/now")
			return s.path("mine/now"), s.dir + "/mine/now/tool"
		},
		"env": func(s *scene) (string, string) {
			return s.path("mine"), s.script("mine/tool", "#!/usr/bin/env python3\n")
		},
		"two names": func(s *scene) (string, string) {
			must(s.t, os.Link(s.program("mine/tool"), s.mine+"/other"))
			s.program("ws/deep/tool")
			return s.path("mine"), s.mine + "/tool"
		},
		"a name that begins as the root's": func(s *scene) (string, string) { return s.path("ws-tools"), s.program("ws-tools/tool") },
		"an entry that does not exist":     func(s *scene) (string, string) { return s.path("none", "mine"), s.program("mine/tool") },
		"a home directory above the root":  func(s *scene) (string, string) { return s.path(".nvm/v22/bin"), s.program(".nvm/v22/bin/tool") },
		"a file that is no program in the way": func(s *scene) (string, string) {
			must(s.t, os.MkdirAll(s.dir+"/none/tool", 0o755))
			must(s.t, os.WriteFile(s.script("text/tool", ""), nil, 0o644))
			must(s.t, os.Chmod(s.dir+"/text/tool", 0o644))
			return s.path("none", "text", "mine"), s.program("mine/tool")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			path, want := put(s)
			if got, err := FindIn("tool", path); err != nil || got != want {
				t.Errorf("FindIn(%q) = %q, %v; want %q", path, got, err, want)
			}
		})
	}
	if got, err := Find("sh"); err != nil || !filepath.IsAbs(got) {
		t.Errorf("Find(sh) = %q, %v", got, err)
	}
}

// TestUpgrade keeps a program that was found while another appears in front of it, and follows an upgrade of it.
func TestUpgrade(t *testing.T) {
	s := newScene(t)
	file := s.program("mine/tool")
	path := s.path("first", "mine")
	find := func(want string) {
		t.Helper()
		if got, err := FindIn("tool", path); err != nil || got != want {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	find(file)
	s.program("first/tool")
	find(file)
	s.script("mine/tool.new", "#!/bin/sh\necho new\n")
	must(t, os.Rename(s.mine+"/tool.new", file)) // as package managers do
	find(s.dir + "/first/tool")
	must(t, os.RemoveAll(s.dir+"/first"))
	find(file)
	must(t, os.Remove(file))
	s.link(s.program("ws/tool"), "mine/tool") // a person's mistake
	if got, err := FindIn("tool", path); err == nil {
		t.Errorf("%s was found", got)
	}
}

func TestClean(t *testing.T) {
	s := newScene(t)
	s.link(s.root, "mine/l")
	ws, mine := s.root, s.mine
	for entry, want := range map[string]string{
		"PATH=" + ws + "/bin:" + mine + "::.:bin:" + mine + "/l/bin:/usr/bin": "PATH=" + mine + ":/usr/bin",
		"PATH=" + ws:                             "PATH=/usr/bin:/bin",
		"PATH=":                                  "PATH=/usr/bin:/bin",
		"LD_LIBRARY_PATH=" + ws + "/lib:" + mine: "LD_LIBRARY_PATH=" + mine,
		"LD_LIBRARY_PATH=:" + mine:               "LD_LIBRARY_PATH=" + mine,
		"LD_PRELOAD=" + ws + "/x.so " + mine + "/y.so": "LD_PRELOAD=" + mine + "/y.so",
		"LD_PRELOAD=x.so":                              "",
		"GIT_EXEC_PATH=" + ws:                          "",
		"PYTHONPATH=src":                               "",
		"NODE_OPTIONS=--require ./x.js":                "",
		"NODE_OPTIONS=--import=file://" + ws + "/x.js": "",
		"NODE_OPTIONS=--max-old-space-size=4096":       "NODE_OPTIONS=--max-old-space-size=4096",
		"NODE_OPTIONS=-r " + mine + "/x.js":            "NODE_OPTIONS=-r " + mine + "/x.js",
		"PERL5OPT=-I" + ws + "/lib -Mx":                "",
		"BASH_ENV=" + ws + "/env":                      "",
		"BROWSER=" + ws + "/b %s":                      "",
		"BROWSER=firefox":                              "BROWSER=firefox",
		"EDITOR=" + mine + "/l/vi":                     "",
		"GIT_SSH_COMMAND=ssh -i " + mine + "/key":      "GIT_SSH_COMMAND=ssh -i " + mine + "/key",
		"GIT_CONFIG_GLOBAL=" + ws + "/.gitconfig":      "",
		"GIT_CONFIG_GLOBAL=" + mine + "/.gitconfig":    "GIT_CONFIG_GLOBAL=" + mine + "/.gitconfig",
		"GIT_CONFIG_VALUE_0=" + ws + "/hooks":          "GIT_CONFIG_VALUE_0=",
		"GIT_CONFIG_VALUE_1=!" + ws + "/helper get":    "GIT_CONFIG_VALUE_1=",
		"GIT_CONFIG_VALUE_2=true":                      "GIT_CONFIG_VALUE_2=true",
		"GIT_CONFIG_PARAMETERS='a.b'='" + ws + "/x'":   "",
		"XDG_CONFIG_HOME=" + ws + "/.config":           "",
		"GNUPGHOME=" + mine + "/l/gpg":                 "",
		"LUA_PATH=" + ws + "/?.lua;;":                  "",
		"PROJECT=" + ws:                                "PROJECT=" + ws,
		"PWD=" + ws:                                    "PWD=" + ws,
	} {
		if got := strings.Join(Clean([]string{entry}), ""); got != want {
			t.Errorf("Clean(%q) = %q, want %q", entry, got, want)
		}
	}
}

// TestNoPlaces: as long as nothing was named, the project around the working directory is not trusted, unless that is
// the home directory.
func TestNoPlaces(t *testing.T) {
	s := newScene(t)
	distrusted.Lock()
	was := distrusted.places
	distrusted.places = map[string]bool{}
	distrusted.Unlock()
	t.Cleanup(func() {
		distrusted.Lock()
		distrusted.places = was
		distrusted.Unlock()
	})
	s.program("ws/bin/tool")
	t.Chdir(s.root)
	if got, err := FindIn("tool", s.path("ws/bin")); err == nil {
		t.Errorf("%s was found", got)
	}
	must(t, os.MkdirAll(s.root+"/.git", 0o755))
	must(t, os.MkdirAll(s.root+"/sub/.claude/deep", 0o755))
	t.Chdir(s.root + "/sub/.claude/deep")
	if got, err := FindIn("tool", s.path("ws/bin")); err == nil {
		t.Errorf("%s was found from a directory of the project", got)
	}
	s.program("mine/tool")
	if got, err := FindIn("tool", s.path("mine")); err != nil {
		t.Errorf("outside of the project: %q, %v", got, err)
	}
	t.Setenv("HOME", s.root)
	if got, err := FindIn("tool", s.path("ws/bin")); err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestCommand(t *testing.T) {
	s := newScene(t)
	s.program("ws/bin/tool-of-the-root")
	s.script("mine/outer", "#!/bin/sh\ntool-of-the-root\necho outer $0\n")
	t.Setenv("PATH", s.path("ws/bin", "mine", "=/usr/bin", "=/bin"))
	if err := Command(t.Context(), "tool-of-the-root").Run(); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	out, err := Command(t.Context(), "outer").Output()
	if want := fmt.Sprintf("outer %s/outer\n", s.mine); err != nil || string(out) != want {
		t.Errorf("got %q, %v; want %q", out, err, want)
	}
	if cmd := Command(t.Context(), "outer", "x"); !slices.Equal(cmd.Args, []string{"outer", "x"}) {
		t.Errorf("the arguments are %q", cmd.Args)
	}
}
