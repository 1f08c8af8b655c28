//go:build linux

package checkpoint

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/toolhost/toolhost/integration/samples"
)

// TestIgnoredLater: what was covered stays covered when ignore files or git's index change, so that two commands can be taken back.
func TestIgnoredLater(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	const files = "mkdir -p d/e; echo 1 >d/e/f; echo 2 >d/g; echo 3 >h; ln -s h l; head -c 1100000 /dev/zero >big; "
	const repo = files + "git init -q; git add .; git commit -qm 1; "
	const change = "echo x >d/e/f; rm d/g; echo y >d/new; echo z >h; chmod 700 d; ln -sfn d l; echo x >big"
	for i, tt := range []struct{ name, before, first string }{
		{"directory", repo, "echo d/ >.gitignore"},
		{"files", repo, "printf 'h\nbig\nl\n*\n' >.gitignore"},
		{"moved ignore file", repo + "mkdir s; printf 'd\nh\nbig\n' >s/.gitignore", "mv s/.gitignore ."},
		{"below", repo, "echo '*' >d/.gitignore"},
		{"made a repository", files + "printf 'd\nh\nbig\n' >.gitignore", "git init -q"},
		{"no repository any more", repo + "printf 'k\n' >.gitignore; mkdir k; echo k >k/k", "rm -rf .git; echo h >.gitignore"},
		{"nested repository", repo, "git init -q d; echo '*' >d/.gitignore"},
		{"exclude", repo, "printf 'd\nh\nbig\n' >>.git/info/exclude"},
		{"excludesFile", repo, "printf 'd\nh\nbig\n' >k; git config core.excludesFile $PWD/k"},
		{"rm --cached", repo + "echo h >.gitignore", "git rm -q --cached h"},
		{"removed from the index", repo, "git rm -rq --cached d h big; printf 'd\nh\nbig\n' >.gitignore"},
		{"assume-unchanged", repo, "git update-index --assume-unchanged d/g h big"},
		{"skip-worktree", repo, "git update-index --skip-worktree d/g h big"},
		{"sparse checkout", repo + "git sparse-checkout set --no-cone '/*' '!/k'", "git sparse-checkout set --no-cone /h; mkdir -p d/e"},
		{"replaced", repo, "echo d/ >.gitignore; rm -r d; mkdir -p d/e; echo 4 >d/g"},
		{"directory for a file", repo, "printf 'd\nh\n' >.gitignore; rm h; mkdir h; echo 1 >h/i; rm -r h; echo 4 >h"},
	} {
		if i%samples.Step(1) != 0 {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			root := newRoot(t)
			sh(t, root, "umask 022; "+tt.before)
			tr := start(t, Config{Root: root})
			if i%4 == 0 { // also where the system announces nothing
				unwatch(t, tr)
			}
			before := snapshot(t, root)
			first := reported(t, tr, root, tt.first)
			second := reported(t, tr, root, "{ "+change+"; } 2>/dev/null || true")
			got := rewound(t, rewound(t, snapshot(t, root), second), first)
			if d := cmp.Diff(before, got); d != "" || first.Ignored+second.Ignored > 0 {
				t.Errorf("%d ignored; (-before +rewound):\n%s", first.Ignored+second.Ignored, d)
			}
		})
	}
}

// reported runs a command and returns what it changed.
func reported(t *testing.T, tr *Tracker, root, command string) *Report {
	t.Helper()
	m := tr.Begin(t.Context())
	sh(t, root, "umask 022; "+command)
	r := m.End()
	t.Cleanup(r.Close)
	return r
}

// TestNoLongerIgnored: what an ignored directory held is not taken for new when ignore files change, and is covered from then on.
func TestNoLongerIgnored(t *testing.T) {
	for _, watched := range []bool{true, false} {
		root := newRoot(t)
		sh(t, root, "git init -q; printf 'd\nbig\n' >.gitignore; mkdir -p d/e; echo 1 >d/e/f; seq 180000 >big")
		tr := start(t, Config{Root: root})
		if !watched {
			unwatch(t, tr)
		}
		if got, want := summary(t, reported(t, tr, root, "rm .gitignore")), "deleted .gitignore \"d\\nbig\\n\"\n"; got != want {
			t.Errorf("watched %v: got %s want %s", watched, got, want)
		}
		if got, want := summary(t, reported(t, tr, root, "echo 2 >d/e/f; echo >big")), fmt.Sprintf("changed big %q\nchanged d/e/f \"1\\n\"\n", seq(180000)); got != want {
			t.Errorf("watched %v: got %.200s want %.200s", watched, got, want)
		}
	}
}

// TestNewWithRules: a directory that comes with the ignore file by which it is not ignored any more is new.
func TestNewWithRules(t *testing.T) {
	for round := range 10 { // the names of a directory are examined in any order
		root := newRoot(t)
		sh(t, root, "git init -q; printf 'd\n' >.gitignore")
		tr := start(t, Config{Root: root})
		if round == 0 {
			unwatch(t, tr)
		}
		got := summary(t, reported(t, tr, root, "rm .gitignore; mkdir -p d/e; echo 1 >d/e/f"))
		if want := "deleted .gitignore \"d\\n\"\nnew d\nnew d/e\nnew d/e/f\n"; ignoredLine.ReplaceAllString(got, "") != want {
			t.Fatalf("got:\n%s\nwant:\n%s", got, want)
		}
	}
}

// TestRandomIgnored: whatever happens to ignore files, what is there before a command is there after its rewind, or it is said that
// ignored files changed.
func TestRandomIgnored(t *testing.T) {
	for seed := range samples.Rounds(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			root, rnd := newRoot(t), rand.New(rand.NewPCG(uint64(seed), 2))
			if seed%2 == 0 {
				sh(t, root, "git init -q; git commit -q --allow-empty -m 0")
			}
			mixed := func(n int) string {
				names := []string{"a", "b", "/a", "b/", "*", "!a", "a/b", "c d"}
				name := func() string { return "'" + names[rnd.IntN(len(names))] + "'" }
				commands := []string{
					"echo %s >>.gitignore", "echo %s >.gitignore", "mkdir -p a; echo %s >a/.gitignore", ": %s; rm -f .gitignore", ": %s; rm -rf .git", ": %s; git init -q",
					"git init -q %s", "echo %s >>.git/info/exclude", "git rm -rq --cached %s", "git update-index --assume-unchanged %s", "mv .gitignore %s",
				}
				some := func(n int) string { // without hard links: a command that makes and removes one is not noticed to write through it
					return strings.ReplaceAll(script(rnd, n), "ln -f ", "cp -f ")
				}
				text := some(n)
				for range rnd.IntN(3) {
					text += "\n{ " + fmt.Sprintf(commands[rnd.IntN(len(commands))], name()) +
						"; } || true\n" + some(n/2)
				}
				return text
			}
			sh(t, root, mixed(20))
			tr := start(t, Config{Root: root})
			for range 5 {
				sh(t, root, mixed(2))
				m := tr.Begin(t.Context())
				before := snapshot(t, root)
				command := mixed(6)
				sh(t, root, command)
				r := m.End()
				got := rewound(t, snapshot(t, root), r)
				withoutEmpty(before)
				withoutEmpty(got)
				if diff := cmp.Diff(before, got); diff != "" && r.Ignored == 0 {
					t.Fatalf("before and rewound differ (-before +rewound):\n%s\n%s\ncommand:\n%s", diff,
						summary(t, r), command)
				}
				r.Close()
			}
		})
	}
}

// withoutEmpty takes directories without files away: those that are ignored are not counted.
func withoutEmpty(all map[string]string) {
	for dir, what := range all {
		full := false
		for path, other := range all {
			full = full || strings.HasPrefix(path, dir+"/") && !strings.HasPrefix(other, "d")
		}
		if strings.HasPrefix(what, "d") && !full {
			maps.DeleteFunc(all, func(path, _ string) bool { return path == dir || strings.HasPrefix(path, dir+"/") })
		}
	}
}
