package attack

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// TestAttackGitNames has tools write into directories that git takes for repositories, and that are not named .git: what
// they write must not run when a person starts git there.
func TestAttackGitNames(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	const bare = `mkdir -p n/objects n/refs; echo ref: refs/heads/x > n/HEAD`
	const lead = bare + `; mkdir s; echo 'gitdir: ../n' > s/.git`
	for _, tt := range []struct {
		name, before string // a command
		files        []string
		in           string // where git is started
	}{
		{"settings", lead, []string{"n/config"}, "s"},
		{"settings of a deep one", `mkdir -p d/e; cd d/e; ` + lead, []string{"d/e/n/config"}, "d/e/s"},
		{"settings of a bare one", bare, []string{"n/config"}, "n"},
		{"settings, then the repository", "", []string{"n/config", "n/objects/x", "n/refs/x", "n/HEAD"}, "n"},
		{"settings, then HEAD", `mkdir -p n/objects n/refs`, []string{"n/config", "n/HEAD"}, "n"},
		{"settings by a link", lead + `; ln -s n m`, []string{"m/config"}, "s"},
		{"settings of a worktree", lead + `; printf '[core]\n\trepositoryformatversion = 1\n[extensions]\n\tworktreeConfig = true\n' > n/config`,
			[]string{"n/config.worktree"}, "s"},
		{"settings in a directory that is not UTF-8", `mkdir $'n\xff'; cd $'n\xff'; ` + lead + `; cd ..; ln -s $'n\xff' u`,
			[]string{"u/n/config"}, "u/s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := newLeftoverGround(t, 0)
			s := g.start(t)
			if tt.before != "" {
				s.MustCall("Bash", host.Args{"command": tt.before})
			}
			for _, file := range tt.files {
				text := "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = " + g.ws + "\n\tfsmonitor = touch " + g.pwned + "\n"
				if filepath.Base(file) == "HEAD" {
					text = "ref: refs/heads/x\n"
				}
				s.Try("Write", host.Args{"file_path": file, "content": text})
			}
			s.End()
			_, _ = g.outside(filepath.Join(g.ws, tt.in), "git status") // git refuses a damaged repository
			if _, err := os.Lstat(g.pwned); err == nil {
				t.Error("what a tool wrote ran outside")
			}
		})
	}
}

// TestAttackUndoGit has commands lay settings and hooks in an ordinary directory, remove them, and make the directory a
// repository. The owner then undoes the removal: git must not run what comes back.
func TestAttackUndoGit(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	const remove = "rm -r n"
	for _, ended := range []bool{false, true} {
		t.Run(fmt.Sprint("ended-", ended), func(t *testing.T) {
			t.Parallel()
			g := newLeftoverGround(t, 0)
			s := g.start(t)
			for _, command := range []string{
				`mkdir -p n/hooks; printf '#!/bin/sh\n%s\n' "touch ` + g.pwned + `" > n/hooks/post-index-change
				chmod +x n/hooks/post-index-change
				printf '[core]\n\trepositoryformatversion = 0\n\tfsmonitor = touch ` + g.pwned + `\n' > n/config`,
				remove,
				`mkdir -p n/objects n/refs s; echo ref: refs/heads/x > n/HEAD; echo 'gitdir: ../n' > s/.git`,
			} {
				s.MustCall("Bash", host.Args{"command": command})
			}
			if ended {
				s.End()
			}
			toolhost := func(args string) string { return g.must(t, g.ws, host.Binary+" "+args) }
			var calls []struct{ ID, Command string }
			host.Must(t, json.Unmarshal([]byte(toolhost("history --json")), &calls))
			i := slices.IndexFunc(calls, func(c struct{ ID, Command string }) bool { return c.Command == remove })
			said := toolhost("undo " + calls[i].ID)
			for _, name := range []string{"core.fsmonitor", "post-index-change.quarantined-1"} {
				if !strings.Contains(said, name) {
					t.Errorf("the owner is not told of %s: %s", name, said)
				}
			}
			g.must(t, filepath.Join(g.ws, "s"), "git status; echo x > x; git add x; git status")
			if _, err := os.Lstat(g.pwned); err == nil {
				t.Error("what a command had made ran outside")
			}
			if !ended {
				s.End()
			}
		})
	}
}

// TestAttackTryGit has a command make an ignored repository, which a copy of the workspace lacks. A client in the copy
// writes settings there: git must not run them once they are applied.
func TestAttackTryGit(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	g := newLeftoverGround(t, 0)
	g.must(t, g.ws, `printf '/n/HEAD\n/n/objects\n/n/refs\n/s\n' > .gitignore; git add .; git commit -q -m ignore
		mkdir -p n/objects n/refs s; echo ref: refs/heads/x > n/HEAD; echo 'gitdir: ../n' > s/.git`)
	said := g.must(t, g.ws, host.Binary+` try --apply -- sh -c 'mkdir -p n; printf "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = touch `+
		g.pwned+`\n" > n/config'`)
	if !strings.Contains(said, "core.fsmonitor was taken out") {
		t.Errorf("the owner is not told: %s", said)
	}
	g.must(t, filepath.Join(g.ws, "s"), "git status")
	if _, err := os.Lstat(g.pwned); err == nil {
		t.Error("what a client had written ran outside")
	}
}
