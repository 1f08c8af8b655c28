//go:build slow

package mcpserver

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/integration/samples"
)

// TestRewindGit: what git and other programs do to a work tree is taken back byte by byte, whatever git stores in its place.
func TestRewindGit(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("slow")
	}
	const git = `git() { command git -c user.name=a -c user.email=a@b -c protocol.file.allow=always -c advice.detachedHead=false "$@"; }
set -e
`
	const two = "git init -q -b main; echo 1 >a; echo 1 >c; git add -A; git commit -qm 1; git checkout -qb side; echo 2 >a; echo 2 >b; git add -A; git commit -qm 2; git checkout -q main; echo 3 >c; git commit -qam 3; "
	for name, tt := range map[string]struct{ before, command, left string }{ // the directory that stays
		"autocrlf":        {"git init -q; git config core.autocrlf true; printf '1\\r\\n2\\r\\n' >a; git add -A; git commit -qm 1; git repack -qad", "printf '3\\n' >a; git checkout -q . ; rm a", ""},
		"eol":             {"git init -q; echo '*.txt text=auto eol=crlf' >.gitattributes; printf '1\\n2\\r\\n' >a.txt; git add -A; git commit -qm 1; rm a.txt; git checkout -q .", "printf '1\\n' >a.txt; cp a.txt b.txt; git add b.txt 2>&1; rm b.txt; git checkout -q b.txt", ""},
		"ident":           {"git init -q; echo '*.c ident' >.gitattributes; echo '// $Id$' >a.c; git add -A; git commit -qm 1; rm a.c; git checkout -q .", "echo x >a.c; git checkout -q .; echo y >>a.c", ""},
		"encoding":        {"git init -q; echo '*.u working-tree-encoding=UTF-16LE text' >.gitattributes; printf 'a\\0\\n\\0' >a.u; git add -A; git commit -qm 1; git repack -qad", "rm a.u; git checkout -q .; printf 'b\\0\\n\\0' >a.u", ""},
		"filter":          {"git init -q; git config filter.r.clean 'tr a-z n-za-m'; git config filter.r.smudge 'tr a-z n-za-m'; echo '*.r filter=r' >.gitattributes; echo abc >a.r; git add -A; git commit -qm 1; git repack -qad", "sed -i s/a/x/ a.r; git config --unset filter.r.smudge; rm a.r; git checkout -q a.r", ""},
		"assumed":         {"git init -q; echo 1 >a; echo 1 >b; git add -A; git commit -qm 1; git update-index --assume-unchanged a; git update-index --skip-worktree b; echo 2 >a; echo 2 >b", "echo 3 >a; rm b", ""},
		"sparse":          {"git init -q; mkdir d e; echo 1 >d/a; echo 1 >e/a; git add -A; git commit -qm 1; git sparse-checkout set d 2>&1", "git sparse-checkout disable 2>&1; echo 2 >d/a", ""},
		"untracked":       {two + "echo u >u; mkdir n; echo v >n/v", "git clean -qdfx; echo 4 >a; git reset -q --hard", ""},
		"checkout":        {two, "git checkout -q side", ""},
		"stash":           {two + "echo 9 >a; echo u >u", "git stash -q -u", ""},
		"stash pop":       {two + "echo 9 >a; echo u >u; git stash -q -u", "git stash pop -q", ""},
		"rebase":          {two, "git checkout -q side; git rebase -q main", ""},
		"conflict":        {two + "echo 8 >a; git commit -qam 4", "git merge -q side || git status -s", ""},
		"amend":           {two, "echo 5 >a; git commit -q --amend -am x; rm c", ""},
		"cherry-pick":     {two, "git cherry-pick side >/dev/null", ""},
		"submodule":       {"mkdir -p s; (cd s; git init -q; echo 1 >a; git add -A; git commit -qm 1; echo 2 >a; git commit -qam 2); git init -q; git add s 2>/dev/null; git commit -qm 1", "cd s; git checkout -q HEAD~; echo x >b", ""},
		"submodule added": {"mkdir -p s; (cd s; git init -q; echo 1 >a; git add -A; git commit -qm 1); git init -q; echo s/ >.git/info/exclude; git commit -qm 1 --allow-empty", "git submodule add -q \"$PWD/s\" t 2>&1", ""},
		"worktree":        {two, "git worktree add -q w side 2>&1; echo 1 >w/n", ""},
		"nested":          {"echo 1 >a; mkdir d; echo 1 >d/a", "rm a; git init -q a; echo 1 >a/b; cd d; git init -q; echo 2 >a; git add -A; git commit -qm 1", "a"},
		"objects gone":    {two, "rm -rf .git/objects/?? a; echo 2 >c", ""},
		"modes":           {"echo 1 >a; mkdir d; echo 1 >d/a; chmod 750 d; chmod 640 a", "chmod 777 d a; chmod u-w d/a", ""},
		"links":           {"echo 1 >a; ln -s a l; ln a h; ln -s nowhere dead; mkdir d; ln -s d dl", "rm l; ln -s h l; echo 2 >h; rm dead dl; mkdir dl; echo 1 >dl/x", ""},
		"empty":           {"mkdir -p e/f/g d; chmod 700 e/f", "rmdir e/f/g e/f; mkdir -p n/m; rmdir d", ""},
		"binary":          {"head -c 3000000 /dev/urandom >big; head -c 2000000 /dev/zero >zero; : >none", "head -c 100 big >x; mv x big; rm zero; truncate -s 3000000 zero; echo 1 >none", ""},
		"case and spaces": {"echo 1 >'a b'; echo 2 >A; mkdir -- '-d'; echo 3 >-d/'$x'", "mv 'a b' a; mv A 'x\ty'; mv -- -d '*'", ""},
	} {
		if samples.Step(1) > 1 && !slices.Contains([]string{"autocrlf", "untracked", "rebase", "worktree", "links"}, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			h, root := openHost(t, nil)
			setup := exec.Command("bash", "-c", git+tt.before)
			setup.Dir = root
			if out, err := setup.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for strings.Contains(bash(t, h, "true"), "had been read") {
			}
			before, since := treeOf(t, root), time.Now()
			said := bash(t, h, git+tt.command+" && echo well")
			if tookLong.MatchString(said) {
				t.Skipf("the machine is too slow: %s", said)
			}
			if !regexp.MustCompile(`(?m)^well$`).MatchString(said) {
				t.Fatalf("the command has failed: %s", said)
			}
			changed := treeOf(t, root)
			r, err := h.Operator().Undo(t.Context(), builtin.UndoSelection{Since: since})
			if err != nil {
				t.Fatal(err)
			}
			left := ""
			for _, u := range r.Files {
				if u.Err != nil {
					left += u.Path[len(root)+1:] + ": " + u.Err.Error() + "\n"
				}
			}
			if tt.left != "" {
				before[tt.left] = changed[tt.left]
			}
			if want := tt.left + ": the directory holds .git"; tt.left == "" && left != "" || tt.left != "" &&
				!strings.HasPrefix(left, want) {
				t.Errorf("left: %s", left)
			}
			if diff := cmp.Diff(before, treeOf(t, root)); diff != "" {
				t.Errorf("rewound (-before +rewound):\n%s", diff)
			}
			if _, err := h.Operator().Undo(t.Context(), builtin.UndoSelection{IDs: []string{r.ID}}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(changed, treeOf(t, root)); diff != "" {
				t.Errorf("undone again (-changed +undone):\n%s", diff)
			}
		})
	}
}
