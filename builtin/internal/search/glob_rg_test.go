package search

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/toolhost/toolhost/integration/samples"
)

// TestGlobsAsRipgrep asks for the files that random globs of a query choose, in random
// repositories: `!`, braces, classes, slashes at both ends.
func TestGlobsAsRipgrep(t *testing.T) {
	rg := ripgrep(t)
	n := samples.Rounds(repositories / 2)
	es := newEngines(t, Config{Workers: 2})
	for seed := range uint64(n) {
		root := t.TempDir()
		r := rand.New(rand.NewPCG(seed, 9))
		makeRepository(t, root, r)
		for range 6 {
			globs := make([]string, 1+r.IntN(2))
			leads := false
			args := []string{"--no-config", "--files", "--hidden", "--no-messages", "--sort", "path"}
			for i := range globs {
				globs[i] = strings.TrimSpace(randomRule(r))
				args = append(args, "-g="+globs[i])
				leads = leads || leadsInto(globs[i])
			}
			if leads {
				continue
			}
			cmd := exec.Command(rg, append(args, "-g=!.git", ".")...) // the last glob counts
			cmd.Dir = root
			out, err := cmd.Output()
			refused := false
			if ee, ok := err.(*exec.ExitError); ok {
				refused = ee.ExitCode() == 2 && strings.Contains(string(ee.Stderr), "glob")
			}
			for name, e := range es {
				q := GrepQuery{Scope: Scope{Base: root, Path: root}, Globs: globs}
				sel, err := q.selection()
				if err != nil || refused {
					if (err != nil) != refused {
						t.Errorf("%s: seed %d, globs %q: %v; refused by rg: %t", name, seed, globs, err, refused)
					}
					continue
				}
				if name != walking {
					settle(t, e, root)
				}
				l, err := e.list(context.Background(), q.Scope, sel)
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, f := range l.files {
					got = append(got, f.rel())
				}
				l.close()
				want := strings.FieldsFunc(strings.ReplaceAll("\n"+string(out), "\n./", "\n"),
					func(r rune) bool { return r == '\n' })
				if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
					t.Errorf("%s: seed %d, globs %q (-rg +engine):\n%s\n%s", name, seed, globs, d, ignoreFileText(root))
				}
			}
		}
		if err := os.RemoveAll(root); err != nil {
			t.Fatal(err)
		}
	}
}

// leadsInto reports whether a glob names a directory by a literal path. Such a one is
// searched here though it is ignored ([ignore.Overrides.MayContain]), by ripgrep not.
func leadsInto(glob string) bool {
	first, _, deeper := strings.Cut(strings.TrimPrefix(glob, "/"), "/")
	return deeper && !strings.HasPrefix(glob, "!") && !strings.ContainsAny(first, "*?[{")
}
