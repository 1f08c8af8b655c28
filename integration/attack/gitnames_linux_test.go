package attack

import (
	"os"
	"path/filepath"
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
