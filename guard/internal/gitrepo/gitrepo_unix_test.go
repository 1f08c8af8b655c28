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

// A repository that came as an archive has a configuration of its maker: `git
// status` would run what core.fsmonitor names, in every mode and unasked.
func TestGitOnlyLooks(t *testing.T) {
	tests := []struct {
		name, file, text string
		want             bool
	}{
		{"no repository", "README", "", true},
		{"plain", ".git/config", "[core]\n\tbare = false\n[user]\n\tname = x\n[alias]\n\tst = !sh\n[core]\n\tpager = x\n", true},
		{"no configuration", ".git/HEAD", "", true},
		{"fsmonitor", ".git/config", "[core]\n\tFSMonitor = touch x\n", false},
		{"external diff", ".git/config", "[diff]\n\texternal = x\n", false},
		{"diff driver", ".git/config", "[diff \"a\"]\n\ttextconv = x\n", false},
		{"filter", ".git/config", "[filter \"a\"]\n\tclean = x\n", false},
		{"signatures", ".git/config", "[log]\n\tshowSignature\n[gpg]\n\tprogram = x\n", false},
		{"include", ".git/config", "[include]\n\tpath = ../x\n", false},
		{"another work tree", ".git/config", "[core]\n\tworktree = /x\n", false},
		{"hooks elsewhere", ".git/config", "[core]\n\thooksPath = x\n", false},
		{"lazy fetch", ".git/config", "[extensions]\n\tpartialClone = x\n", false},
		{"hook", ".git/hooks/post-index-change", "", false},
		{"other hooks do not run", ".git/hooks/pre-commit", "", true},
		{"pointer to another directory", ".git", "gitdir: /x\n", false},
		{"configuration of another directory", ".git/commondir", "../x\n", false},
		{"too long to be one", ".git/config", strings.Repeat("#", maxConfig+1), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			name := filepath.Join(dir, tt.file)
			if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(tt.text), 0o755); err != nil {
				t.Fatal(err)
			}
			for _, at := range []string{dir, filepath.Join(dir, "sub")} {
				if got := OnlyLooks(at); got != tt.want {
					t.Errorf("OnlyLooks(%s) = %v, want %v", at, got, tt.want)
				}
			}
		})
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, ".git", "config"), 0o644); err != nil {
		t.Fatal(err)
	}
	if OnlyLooks(dir) { // and must not wait for a writer
		t.Error("a FIFO counts as harmless")
	}
	dir = t.TempDir()
	for name, text := range map[string]string{"HEAD": "ref: refs/heads/x\n", "config": "[core]\n\tfsmonitor = x\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "objects"), 0o755); err != nil {
		t.Fatal(err)
	}
	if OnlyLooks(dir) {
		t.Error("a directory that is itself a repository counts as harmless")
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
				dir := t.TempDir()
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
				if ran, looks := err == nil, OnlyLooks(dir); ran != hostile || looks && ran || !looks && !hostile && version != "4" {
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
			if got := OnlyLooks(here); got != tt.want {
				t.Errorf("only looks: %v, want %v", got, tt.want)
			}
		})
	}
}
