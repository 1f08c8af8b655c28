package baseline

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestGuard(t *testing.T) {
	const before = "[core]\n\tbare = false\n\tpager = less\n[alias]\n\tst = status\n"
	for _, c := range []struct {
		name, after string
		removed     string
		left        string // "" is after
	}{
		{"unchanged", before, "", ""},
		{"harmless", before + "[remote \"origin\"]\n\turl = https://example.com/x\n[branch \"main\"]\n\tremote = origin\n[user]\n\tname = x\n", "", ""},
		{"fsmonitor", before + "[core]\n\tfsmonitor = ./evil\n", "core.fsmonitor", before + "[core]\n"},
		{"fsmonitor on", before + "[core]\n\tfsmonitor = true\n", "", ""},
		{"case and one line", before + "[CoRe] FSMonitor=./evil\n", "core.fsmonitor", before + "[CoRe] "},
		{"changed value", strings.Replace(before, "less", "evil", 1), "core.pager", "[core]\n\tbare = false\n[alias]\n\tst = status\n"},
		{"continued line", before + "[core]\n\tsshCommand = a \\\n b\n\tx = y\n", "core.sshcommand", before + "[core]\n\tx = y\n"},
		{"quoted", before + "[core]\n\t\"x\n", "", before},
		{"quoted value", before + "[core]\n\thooksPath = \"a # b\" ; c\n", "core.hookspath", before + "[core]\n"},
		{"alias", before + "[alias]\n\tx = \"!sh\"\n\ty = log\n\tz = -c core.pager=x log\n", "alias.x alias.z", before + "[alias]\n\ty = log\n"},
		{"filter", before + "[filter \"a.b\"]\n\tclean = evil\n\tsmudge=evil\n\trequired\n", "filter.a.b.clean filter.a.b.smudge filter.a.b.required", before + "[filter \"a.b\"]\n"},
		{"old subsection", before + "[diff.x]\n\ttextconv = evil\n", "diff.x.textconv", before + "[diff.x]\n"},
		{"include", before + "[include]\n\tpath = ../evil\n[includeIf \"gitdir:/\"]\n\tpath = evil\n", "include.path includeif.gitdir:/.path", before + "[include]\n[includeIf \"gitdir:/\"]\n"},
		{"credential of a host", before + "[credential \"https://x.y\"]\n\thelper = !evil\n", "credential.https://x.y.helper", before + "[credential \"https://x.y\"]\n"},
		{"pager of a command", before + "[pager]\n\tlog = evil\n\tdiff = false\n", "pager.log", before + "[pager]\n\tdiff = false\n"},
		{"remote", before + "[remote \"o\"]\n\turl = ext::sh -c evil\n\tuploadpack = evil\n", "remote.o.url remote.o.uploadpack", before + "[remote \"o\"]\n"},
		{"worktree configuration", before + "[extensions]\n\tworktreeConfig = true\n", "", ""}, // its file is cleaned too
		{"submodule", before + "[submodule \"s\"]\n\tupdate = !evil\n\tupdate = merge\n", "submodule.s.update", before + "[submodule \"s\"]\n\tupdate = merge\n"},
		{"lfs", before + "[lfs \"extension.x\"]\n\tclean = evil\n", "lfs.extension.x.clean", before + "[lfs \"extension.x\"]\n"},
		{"hooks of settings", before + "[hook \"x\"]\n\tcommand = evil\n\tevent = pre-commit\n[gc]\n\trecentObjectsHook = evil\n", "hook.x.command gc.recentobjectshook", before + "[hook \"x\"]\n\tevent = pre-commit\n[gc]\n"},
		{"work tree elsewhere", before + "[core]\n\tworktree = /home/u\n", "core.worktree", before + "[core]\n"},
		{"work tree above", before + "[core]\n\tworktree = ../..\n", "core.worktree", before + "[core]\n"},
		{"no value", before + "[core]\n\tfsmonitor\n", "", ""},
		{"comments", before + "# fsmonitor = x\n; [core]\n", "", ""},
		{"not understood", before + "[core\n\tfsmonitor = evil\n", "", before},
		{"no end", before + "[core]\n\tfsmonitor = evil", "core.fsmonitor", before + "[core]\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, ".git", "config")
			write(t, path, before)
			g, err := guardOf(t, dir)
			if err != nil {
				t.Fatal(err)
			}
			write(t, path, c.after)
			removed, err := g.Clean()
			if err != nil {
				t.Fatal(err)
			}
			var keys []string
			for _, note := range removed {
				if rest, ok := strings.CutPrefix(note, "The setting "); ok {
					key, _, _ := strings.Cut(rest, " was taken out of ")
					keys = append(keys, key)
				}
			}
			if got := strings.Join(keys, " "); got != c.removed {
				t.Errorf("removed %q, want %q", got, c.removed)
			}
			want := c.left
			if want == "" {
				want = c.after
			}
			if got, _ := os.ReadFile(path); string(got) != want {
				t.Errorf("left %q, want %q", got, want)
			}
		})
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Files that make git look elsewhere, links in their place, and new ones.
func TestGuardFiles(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "config")
	write(t, outside, "[core]\n\tfsmonitor = evil\n")
	write(t, dir+"/.git/config", "[core]\n\tbare = false\n")
	g, err := guardOf(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(dir + "/.git/config")
	if err := os.Symlink(outside, dir+"/.git/config"); err != nil {
		t.Fatal(err)
	}
	evil := "[core]\n\tfsmonitor = evil\n"
	write(t, dir+"/.git/config.worktree", evil)
	write(t, dir+"/.git/modules/sub/deep/config", evil)
	write(t, dir+"/.git/worktrees/w/config.worktree", evil)
	removed, err := g.Clean()
	if err != nil {
		t.Fatal(err)
	}
	if len(removed) != 4 {
		t.Errorf("removed %+v", removed)
	}
	if b, err := os.ReadFile(dir + "/.git/config"); err != nil || string(b) != "[core]\n\tbare = false\n" {
		t.Errorf("configuration: %q, %v", b, err)
	}
	if b, _ := os.ReadFile(outside); string(b) != evil {
		t.Errorf("outside was changed: %q", b)
	}
	for _, name := range []string{".git/config.worktree", ".git/modules/sub/deep/config",
		".git/worktrees/w/config.worktree"} {
		if b, _ := os.ReadFile(filepath.Join(dir, name)); strings.Contains(string(b), "evil") {
			t.Errorf("%s: %q", name, b)
		}
	}
	if again, err := g.Clean(); again != nil || err != nil {
		t.Errorf("again: %v, %v", again, err)
	}
}

// A file named .git leads git to a repository elsewhere, whose configuration
// no one cleans: none may appear, and one that is there may not lead elsewhere.
func TestGuardGitFile(t *testing.T) {
	const good, evil = "gitdir: /somewhere/.git/worktrees/w\n", "gitdir: /somewhere/evil\n"
	for _, c := range []struct {
		name, before string
		change       func(t *testing.T, dir string)
		removed      int
		left         string
	}{
		{"appears", "", func(t *testing.T, dir string) { write(t, dir+"/.git", evil) }, 1, ""},
		{"changes", good, func(t *testing.T, dir string) { write(t, dir+"/.git", evil) }, 1, good},
		{"stays", good, func(*testing.T, string) {}, 0, good},
		{"goes", good, func(t *testing.T, dir string) { os.Remove(dir + "/.git") }, 0, ""},
		{"ends early", "", func(t *testing.T, dir string) { write(t, dir+"/.git", "gitdir: x\x00/..\n") }, 1, ""},
		{"becomes a fifo", good, func(t *testing.T, dir string) {
			os.Remove(dir + "/.git")
			if err := exec.Command("mkfifo", dir+"/.git").Run(); err != nil {
				t.Skip(err)
			}
		}, 1, good},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if c.before != "" {
				write(t, dir+"/.git", c.before)
			}
			g, err := guardOf(t, dir)
			if err != nil {
				t.Fatal(err)
			}
			c.change(t, dir)
			removed, err := g.Clean()
			if err != nil || len(removed) != c.removed {
				t.Errorf("removed %+v, %v", removed, err)
			}
			if got, _ := os.ReadFile(dir + "/.git"); string(got) != c.left {
				t.Errorf("left %q, want %q", got, c.left)
			}
		})
	}
	t.Run("becomes a directory", func(t *testing.T) {
		dir := t.TempDir()
		write(t, dir+"/.git", good)
		g, err := guardOf(t, dir)
		if err != nil {
			t.Fatal(err)
		}
		os.Remove(dir + "/.git")
		write(t, dir+"/.git/config", "[core]\n\tfsmonitor = evil\n")
		if removed, err := g.Clean(); err != nil || len(removed) != 1 {
			t.Errorf("removed %+v, %v", removed, err)
		}
	})
}

// What leads git to other settings and hooks than those that are looked at.
func TestGuardLeads(t *testing.T) {
	const evil = "[core]\n\tfsmonitor = evil\n"
	for _, c := range []struct {
		name    string
		before  []string // files that exist
		after   map[string]string
		removed int
		kept    map[string]string // "" is gone
	}{
		{"common directory", []string{".git/config"}, map[string]string{".git/commondir": "../evil\n", "evil/config": evil}, 1, map[string]string{".git/commondir": ""}},
		{"common directory of a work tree", []string{".git/config"}, map[string]string{".git/worktrees/w/commondir": "../..\n"}, 0, map[string]string{".git/worktrees/w/commondir": "../..\n"}},
		{"another one of a work tree", []string{".git/config"}, map[string]string{".git/worktrees/w/commondir": "../../../evil\n"}, 1, map[string]string{".git/worktrees/w/commondir": ""}},
		{"one that begins with an empty line", []string{".git/config"}, map[string]string{".git/worktrees/w/commondir": "\n../..\n"}, 1, map[string]string{".git/worktrees/w/commondir": ""}},
		{"one that ends with a space", []string{".git/config"}, map[string]string{".git/worktrees/w/commondir": "../.. \n"}, 1, map[string]string{".git/worktrees/w/commondir": ""}},
		{"common directory of a submodule", []string{".git/config"}, map[string]string{".git/modules/m/commondir": "../..\n"}, 1, map[string]string{".git/modules/m/commondir": ""}},
		{"work tree of a submodule", []string{".git/config"}, map[string]string{".git/modules/m/config": "[core]\n\tworktree = ../../../m\n"}, 0,
			map[string]string{".git/modules/m/config": "[core]\n\tworktree = ../../../m\n"}},
		{"work tree of a submodule elsewhere", []string{".git/config"}, map[string]string{".git/modules/m/config": "[core]\n\tworktree = ../../../../m\n"}, 1,
			map[string]string{".git/modules/m/config": "[core]\n"}},
		{"the work tree itself", nil, map[string]string{"HEAD": "ref: refs/heads/x\n", "objects/x": "", "refs/x": "", "config": evil}, 1, map[string]string{"HEAD": "ref: refs/heads/x\n", "config": "[core]\n"}},
		{"by names that some file systems fold", nil, map[string]string{".GIT/config": evil, "d/.g\u200cit/config": evil, "e/.git/config": evil}, 3,
			map[string]string{".GIT/config": "[core]\n", "d/.g\u200cit/config": "[core]\n"}},
		{"not quite", nil, map[string]string{"HEAD": "mine\n", "config": evil}, 0, map[string]string{"HEAD": "mine\n", "config": evil}},
		{"one that was there", []string{"HEAD", "objects/x", "refs/x", "config"}, map[string]string{"HEAD": "ref: refs/heads/y\n", "config": evil}, 1,
			map[string]string{"HEAD": "ref: refs/heads/y\n", "config": "[core]\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, name := range c.before {
				write(t, filepath.Join(dir, name), "[x]\n")
			}
			g, err := guardOf(t, dir)
			if err != nil {
				t.Fatal(err)
			}
			for name, text := range c.after {
				write(t, filepath.Join(dir, name), text)
			}
			removed, err := g.Clean()
			if err != nil || len(removed) != c.removed {
				t.Errorf("removed %+v, %v", removed, err)
			}
			for name, want := range c.kept {
				if got, _ := os.ReadFile(filepath.Join(dir, name)); string(got) != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
		})
	}
}

// What could not be read before is left alone as long as that stays so.
func TestGuardOdd(t *testing.T) {
	dir := t.TempDir()
	evil := "[core]\n\tfsmonitor = evil\n"
	write(t, dir+"/dotfiles", evil)
	if err := os.Mkdir(dir+"/.git", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../dotfiles", dir+"/.git/config"); err != nil {
		t.Fatal(err)
	}
	g, err := guardOf(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if removed, err := g.Clean(); removed != nil || err != nil {
		t.Errorf("unchanged: removed %+v, %v", removed, err)
	}
	os.Remove(dir + "/.git/config")
	write(t, dir+"/.git/config", evil)
	if removed, err := g.Clean(); err != nil || len(removed) != 1 {
		t.Errorf("now a file: removed %+v, %v", removed, err)
	}
}

// A guarded directory is one in which a command runs.
type guardedDir struct {
	k    *Keeper
	told int
}

// guardOf has a command begin in a directory.
func guardOf(t *testing.T, dir string) (*guardedDir, error) {
	t.Helper()
	k := Open("", slog.New(slog.DiscardHandler))
	k.Begin([]string{dir}, nil)
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return &guardedDir{k: k}, nil
}

// Clean has the command end, and returns what was taken out.
func (g *guardedDir) Clean() (notes []string, err error) {
	err = g.k.Check()
	notes, g.told = g.k.Since(g.told)
	return notes, err
}

// A command that takes away the right to write, or to look, keeps nothing in place.
func TestGuardMendsRights(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/.git/config", "[core]\n\tbare = false\n")
	g, err := guardOf(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	const evil = "[core]\n\tfsmonitor = evil\n"
	write(t, dir+"/.git/config", evil)
	write(t, dir+"/sub/.git/config", evil)
	write(t, dir+"/sub/.git/hooks/pre-commit", "evil")
	for _, c := range []struct {
		name string
		mode os.FileMode
	}{{"/sub/.git/hooks/pre-commit", 0o111}, {"/sub/.git/hooks", 0}, {"/sub/.git", 0o100}, {"/sub", 0}, {"/.git",
		0o555}, {"/", 0o555}} {
		_ = os.Chmod(dir+c.name, c.mode) // what is gone already needs none
	}
	if removed, err := g.Clean(); err != nil {
		t.Errorf("removed %v, %v", removed, err)
	}
	os.Chmod(dir, 0o755)
	for _, name := range []string{"/.git/config", "/sub/.git/config"} {
		if text, err := os.ReadFile(dir + name); err != nil || strings.Contains(string(text), "evil") {
			t.Errorf("%s is %q, %v", name, text, err)
		}
	}
	if _, err := os.Lstat(dir + "/sub/.git/hooks/pre-commit"); err == nil {
		t.Error("the hook is still there")
	}
}
