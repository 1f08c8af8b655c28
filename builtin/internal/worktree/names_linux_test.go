package worktree

import (
	"fmt"
	"strings"
	"testing"
)

// Names that are not UTF-8 are copied, merged and applied like others, and what both have changed is a conflict.
func TestForeignNames(t *testing.T) {
	const before = "mkdir -p 'd\xff/e\xfe'; echo one > 'd\xff/e\xfe/f'; echo two > 'n\xff'; echo three > 'm\xff'"
	for _, c := range []struct{ name, agent, user, conflicts string }{
		{"edits", "echo x >> 'd\xff/e\xfe/f'; echo y >> 'n\xff'", "", ""},
		{"new", "echo x > 'new\xff'; mkdir 'dir\xff'; echo y > 'dir\xff/\xfe'; ln -s 'n\xff' 'l\xfe'", "", ""},
		{"removed", "rm -r 'd\xff' 'n\xff'", "", ""},
		{"moved", "mv 'd\xff' 'g\xff'; mv 'n\xff' n", "", ""},
		{"a file for a directory", "rm -r 'd\xff'; echo x > 'd\xff'", "", ""},
		{"a directory for a file", "rm 'n\xff'; mkdir 'n\xff'; echo x > 'n\xff/\xfe'", "", ""},
		{"both", "echo x >> 'n\xff'; echo x > 'new\xff'", "echo y >> 'n\xff'; echo y > 'new\xff'", "new\xff n\xff"},
		{"both, another file", "echo x >> 'n\xff'", "echo y >> 'm\xff'", ""},
	} {
		for _, plain := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, plain %t", c.name, plain), func(t *testing.T) {
				dir, r := t.TempDir(), room(t)
				sh(t, dir, before)
				var w *Worktree
				if plain {
					var err error
					if w, err = r.Copy(t.Context(), dir, Try, nil); err != nil {
						t.Fatal(err)
					}
				} else {
					sh(t, dir, "git init -q -b main; git add .; git -c user.name=t -c user.email=t commit -qm first")
					w = mustMake(t, r, dir, true)
				}
				sh(t, w.Tree(), c.agent)
				if c.user != "" {
					sh(t, dir, c.user)
				}
				mustEnd(t, w)
				m, err := w.Merge(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer m.Close()
				if got := strings.Join(m.Conflicts, " "); got != c.conflicts {
					t.Errorf("conflicts: %q, want %q", got, c.conflicts)
				}
				if err := m.Current(t.Context()); err != nil {
					t.Error(err)
				}
				write(t, dir, m)
				const look = "rm -rf .git; find . | LC_ALL=C sort; LC_ALL=C find . -type f -exec cat {} + | sort"
				if got, want := sh(t, dir, look), sh(t, w.Tree(), look); c.user == "" && got != want {
					t.Errorf("applied:\n%q\nwant\n%q", got, want)
				}
			})
		}
	}
}
