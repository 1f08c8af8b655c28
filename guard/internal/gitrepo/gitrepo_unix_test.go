//go:build unix

package gitrepo

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// skeleton makes what git takes for a repository, without running it.
func skeleton(t *testing.T, git string) {
	t.Helper()
	for _, name := range []string{"objects", "refs/heads"} {
		if err := os.MkdirAll(filepath.Join(git, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put(t, git, "HEAD", "ref: refs/heads/main\n")
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	name = filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// A repository that came as an archive has a configuration of its maker: git
// status would run what core.fsmonitor names, in every mode and unasked.
func TestAt(t *testing.T) {
	tests := []struct {
		name, file, text string // in a repository at .git
		want             Kind
	}{
		{"plain", ".git/config", "[core]\n\tbare = false\n[user]\n\tname = x\n[alias]\n\tst = !sh\n[core]\n\tpager = x\n", WorkTree},
		{"no configuration", "README", "", WorkTree},
		{"names that only sound like it", ".git/config", "[remote \"filter\"]\n\turl = git@example.org:x/commander.git\n[branch \"external\"]\n\tremote = program\n", WorkTree},
		{"part of git", ".git/config", "[core]\n\tfsmonitor = true\n", WorkTree},
		{"sparse checkout", ".git/config", "[extensions]\n\tworktreeConfig = true\n", WorkTree},
		{"its own work tree", ".git/config", "[core]\n\tworktree = ..\n", WorkTree},
		{"detached", ".git/HEAD", strings.Repeat("0a", 20) + "\n", WorkTree},
		{"fsmonitor", ".git/config", "[core]\n\tFSMonitor = touch x\n", Unusual},
		{"fsmonitor of a work tree", ".git/config.worktree", "[core]\n\tFSMonitor = touch x\n", Unusual},
		{"external diff", ".git/config", "[diff]\n\texternal = x\n", Unusual},
		{"diff driver", ".git/config", "[diff \"a\"]\n\ttextconv = x\n", Unusual},
		{"diff command in one line", ".git/config", "[user] name = x\n[diff.a]command=x", Unusual},
		{"diff in submodules", ".git/config", "[diff]\n\tsubmodule = diff\n", Unusual},
		{"filter", ".git/config", "[filter \"a\"]\n\tclean = x\n", Unusual},
		{"filter of a filter", ".git/config", "[lfs \"extension.a\"]\n\tclean = x\n", Unusual},
		{"merge driver", ".git/config", "[merge \"a\"]\n\tdriver = x\n", Unusual},
		{"signatures", ".git/config", "[log]\n\tshowSignature\n[gpg]\n\tprogram = x\n", Unusual},
		{"signatures of another kind", ".git/config", "[gpg \"ssh\"]\n\tprogram = x\n", Unusual},
		{"include", ".git/config", "[include]\n\tpath = ../x\n", Unusual},
		{"include if", ".git/config", "[includeIf \"gitdir:/\"]\n\tpath = ../x\n", Unusual},
		{"alias in the place of a command", ".git/config", "[alias]\n\twhatchanged = !x\n", Unusual},
		{"hook in the configuration", ".git/config", "[hook \"a\"]\n\tcommand = x\n", Unusual},
		{"another work tree", ".git/config", "[core]\n\tworktree = /x\n", Unusual},
		{"hooks elsewhere", ".git/config", "[core]\n\thooksPath = x\n", Unusual},
		{"lazy fetch", ".git/config", "[extensions]\n\tpartialClone = x\n", Unusual},
		{"lazy fetch of a remote", ".git/config", "[remote \"o\"]\n\tpromisor\n", Unusual},
		{"hook", ".git/hooks/post-index-change", "", Unusual},
		{"other hooks do not run", ".git/hooks/pre-commit", "", WorkTree},
		{"configuration of another directory", ".git/commondir", "../x\n", Unusual},
		{"too long to be one", ".git/config", strings.Repeat("#", maxConfig+1), Unusual},
		{"not a configuration", ".git/config", "x\n", Unusual},
		{"not a head", ".git/HEAD", "x\n", Unusual},
		{"an empty head", ".git/HEAD", "", Unusual},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := realTemp(t)
			skeleton(t, filepath.Join(dir, ".git"))
			put(t, dir, tt.file, tt.text)
			put(t, dir, "sub/file", "")
			for _, at := range []string{dir, filepath.Join(dir, "sub")} {
				if got := At(at); got != tt.want {
					t.Errorf("At(%s) = %v, want %v", at, got, tt.want)
				}
			}
		})
	}
}

func realTemp(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestAtOtherPlaces is TestAt for directories whose repository is not a .git of their own.
func TestAtOtherPlaces(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(dir string)
		want Kind
	}{
		{"none", func(string) {}, None},
		{"another directory", func(dir string) { put(t, dir, ".git", "gitdir: /x\n") }, Unusual},
		{"empty", func(dir string) { put(t, dir, ".git/x", "") }, None},
		{"empty, in a work tree", func(dir string) { put(t, dir, ".git/x", ""); skeleton(t, filepath.Dir(dir)+"/.git") }, WorkTree},
		{"empty, in one with a program", func(dir string) {
			put(t, dir, ".git/x", "")
			skeleton(t, filepath.Dir(dir)+"/.git")
			put(t, dir, "../.git/config", "[core]\n\tfsmonitor = x\n")
		}, Unusual},
		{"a link", func(dir string) { skeleton(t, dir+"/x"); os.Symlink("x", dir+"/.git") }, Unusual},
		{"a link to nothing", func(dir string) { os.Symlink("x", dir+"/.git") }, Unusual},
		{"no objects", func(dir string) { skeleton(t, dir+"/.git"); os.Remove(dir + "/.git/objects") }, Unusual},
		{"closed objects", func(dir string) { skeleton(t, dir+"/.git"); os.Chmod(dir+"/.git/objects", 0o600) }, Unusual},
		{"a pipe", func(dir string) { skeleton(t, dir+"/.git"); syscall.Mkfifo(dir+"/.git/config", 0o644) }, Unusual}, // and must not wait for a writer
		{"bare", func(dir string) { skeleton(t, dir) }, Bare},
		{"bare with a program", func(dir string) { skeleton(t, dir); put(t, dir, "config", "[core]\n\tfsmonitor = x\n") }, Unusual},
		{"bare with a work tree", func(dir string) { skeleton(t, dir); put(t, dir, "config", "[core]\n\tworktree = .\n") }, Unusual},
		{"bare after an empty one", func(dir string) { skeleton(t, dir); put(t, dir, ".git/x", "") }, Unusual},
		{"shared directory", func(dir string) { put(t, dir, "HEAD", "ref: refs/heads/x"); put(t, dir, "commondir", "x") }, Unusual},
		{"head and refs", func(dir string) { skeleton(t, dir); os.Remove(dir + "/objects") }, Unusual},
		{"head alone", func(dir string) { put(t, dir, "HEAD", "x") }, None},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(realTemp(t), "dir")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			tt.make(dir)
			if got := At(dir); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// TestSubmodulesOnlyLook runs git status in repositories with submodules whose
// configuration runs a program, and holds that it ran only where the guard expects it.
func TestSubmodulesOnlyLook(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	for _, version := range []string{"2", "3", "4"} {
		for _, format := range []string{"sha1", "sha256"} {
			for _, hostile := range []bool{false, true} {
				dir := realTemp(t)
				git := func(in string, args ...string) {
					t.Helper()
					cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "index.version=" + version}, args...)...)
					cmd.Dir, cmd.Env = filepath.Join(dir, in), append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
					if out, err := cmd.CombinedOutput(); err != nil {
						t.Fatalf("git %v: %v\n%s", args, err, out)
					}
				}
				git("", "init", "-q", "--object-format="+format)
				git("", "init", "-q", "--object-format="+format, "deep/sub")
				git("deep/sub", "commit", "-q", "--allow-empty", "-m", "x")
				git("", "add", "deep/sub")
				if version == "3" {
					if err := os.WriteFile(filepath.Join(dir, "new"), nil, 0o644); err != nil {
						t.Fatal(err)
					}
					git("", "add", "-N", "new") // which takes the longer flags
				}
				if version == "2" {
					git("", "update-index", "--split-index")
				}
				if hostile {
					git("deep/sub", "config", "core.fsmonitor", "touch "+filepath.Join(dir, "ran")+"; false")
				}
				git("", "status")
				_, err := os.Lstat(filepath.Join(dir, "ran"))
				if ran, looks := err == nil, At(dir) == WorkTree; ran != hostile || looks && ran || !looks && !hostile && version != "4" {
					t.Errorf("version %s, %s: hostile %v, ran %v, only looks %v", version, format, hostile, ran, looks)
				}
			}
		}
	}
}

// TestGitLooksElsewhere holds that git which only looks shows nothing of a repository that
// this one leads to, and that a work tree which git made is none of these.
func TestGitLooksElsewhere(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	const secret = "told by another repository"
	for _, tt := range []struct {
		name, lead string // to be run between $OTHER, which holds the secret, and $HERE
		look       string
		shows      bool // to git
		want       bool
	}{
		{"a repository of its own", "git init -q", "git cat-file --batch-all-objects --batch", false, true},
		{"an alternate store", `git init -q; echo "$OTHER/.git/objects" > .git/objects/info/alternates`, "git cat-file --batch-all-objects --batch", true, false},
		{"a store behind a link", `git init -q; rm -r .git/objects; ln -s "$OTHER/.git/objects" .git/objects`, "git cat-file --batch-all-objects --batch", true, false},
		{"a pack behind a link", `git init -q; cp -r "$OTHER/.git/objects" .git/o; rm -r .git/objects/pack; ln -s "$OTHER/.git/objects/pack" .git/objects/pack`, "git cat-file --batch-all-objects --batch", true, false},
		{"the directory of another one", `echo "gitdir: $OTHER/.git" > .git`, "git show HEAD:secret", true, false},
		{"the work tree of another one", `git -C "$OTHER" worktree add -q ../third; cp ../third/.git .`, "git show HEAD:secret", true, false},
		{"a work tree of its own", `git -C "$OTHER" worktree add -q -f "$HERE"`, "git show HEAD:secret", true, true},
		{"a work tree whose repository runs something", `git -C "$OTHER" worktree add -q -f "$HERE"; git -C "$OTHER" config core.fsmonitor x`, "git show HEAD:secret", true, false},
		{"a work tree with a common directory elsewhere", `git -C "$OTHER" worktree add -q -f "$HERE"; echo ../../../.git > "$OTHER/.git/worktrees/here/commondir"`, "git show HEAD:secret", true, true},
		{"a work tree with a common directory that differs in a blank", `git -C "$OTHER" worktree add -q -f "$HERE"; cp -r "$OTHER/.git" "$HERE.c"; mv "$HERE.c" "$OTHER/.git/worktrees/.. "; echo '../.. ' > "$OTHER/.git/worktrees/here/commondir"; git config -f "$OTHER/.git/worktrees/.. /config" core.fsmonitor x`, "git show HEAD:secret", true, false},
		{"a work tree by a path through a link", `git -C "$OTHER" worktree add -q -f "$HERE"; mkdir -p x/y; ln -s "$OTHER/.git" x/l; echo "gitdir: $HERE/x/l/../.git/worktrees/here" > .git`, "git show HEAD:secret", true, false},
		{"a work tree with another common directory", `git -C "$OTHER" worktree add -q -f "$HERE"; git init -q "$OTHER/x"; echo "$OTHER/x/.git" > "$OTHER/.git/worktrees/here/commondir"`, "git status", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			here := filepath.Join(dir, "here")
			run := func(in, script string) string {
				t.Helper()
				cmd := exec.Command("sh", "-c", script)
				cmd.Dir = in
				cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "OTHER="+filepath.Join(dir, "other"), "HERE="+here,
					"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.org", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.org")
				out, err := cmd.CombinedOutput()
				if err != nil && in == dir {
					t.Fatalf("%s: %v\n%s", script, err, out)
				}
				return string(out)
			}
			run(dir, `mkdir here other; cd other; git init -q; echo '`+secret+`' > secret; git add .; git commit -q -m x; git gc -q; cd ../here; `+tt.lead)
			if shown := strings.Contains(run(here, tt.look), secret); shown != tt.shows {
				t.Fatalf("%s shows it: %v", tt.look, shown)
			}
			if got := At(here) == WorkTree; got != tt.want {
				t.Errorf("only looks: %v, want %v", got, tt.want)
			}
		})
	}
}
