package search

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/toolhost/toolhost/integration/samples"
)

// repositories is how many repositories are compared with -tags slow.
const repositories = 150

// TestIgnoreAsRipgrep makes random trees with random ignore files in them and
// compares the files that are left with those of ripgrep, from the top and
// from a directory inside.
func TestIgnoreAsRipgrep(t *testing.T) {
	rg := ripgrep(t)
	n := samples.Rounds(repositories)
	es := newEngines(t, Config{Workers: 2})
	for seed := range uint64(n) {
		root := t.TempDir()
		r := rand.New(rand.NewPCG(seed, 2))
		dirs := makeRepository(t, root, r)
		for _, dir := range []string{root, filepath.Join(root, dirs[r.IntN(len(dirs))])} {
			out, err := exec.Command(rg, "--no-config", "--files", "--hidden", "--no-messages", "--sort", "path", "-g",
				"!.git", dir).Output()
			if ee, ok := err.(*exec.ExitError); ok && ee.ExitCode() > 2 { // 2: a rule that is not valid
				t.Fatalf("rg: %v\n%s", err, ee.Stderr)
			}
			want := strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' })
			for name, e := range es {
				if name != walking {
					settle(t, e, root)
				}
				if d := cmp.Diff(want, listed(t, e, Scope{Base: root, Path: dir}), cmpopts.EquateEmpty()); d != "" {
					t.Errorf("%s: seed %d in %s (-rg +engine):\n%s\n%s", name, seed, strings.TrimPrefix(dir, root), d,
						ignoreFileText(root))
				}
			}
		}
		if err := os.RemoveAll(root); err != nil {
			t.Fatal(err)
		}
	}
}

// listed returns the real paths of a scope's files.
func listed(tb testing.TB, e *Engine, scope Scope) []string {
	tb.Helper()
	l, err := e.list(context.Background(), scope, &selection{})
	if err != nil {
		tb.Fatal(err)
	}
	defer l.close()
	var got []string
	for _, f := range l.files {
		got = append(got, l.real(f.rel()))
	}
	return got
}

// ignoreFileText returns the rules of a repository for the text of a failure.
func ignoreFileText(root string) string {
	var b strings.Builder
	_ = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && (strings.HasSuffix(path, "ignore") || strings.HasSuffix(path, "exclude")) {
			content, _ := os.ReadFile(path)
			fmt.Fprintf(&b, "%s: %q\n", strings.TrimPrefix(path, root), content)
		}
		return nil
	})
	return b.String()
}

var (
	entryNames = []string{"a", "b", "foo", "bar", "build", "x.o", "y.c", "z.txt", ".hid", "foo.c", "foo bar", "a.b.c", "Foo",
		"node_modules", "#h", "!b", "log", "debug.log", "é", "{a}", "[x", "a]", "-", "tail ", `back\slash`}
	ruleElements = []string{"*", "**", "foo", "bar", "build", "*.o", "*.c", "?", "[ab]", "[!a]", "[^b]", "[a-c]*", "a", "b", "x*",
		"*.txt", "foo*", ".*", "*.b.*", `foo\*`, `\!b`, `\#h`, "node_modules", "log", "debug*.log", "[[:alpha:]]", "a[]-]", "**foo",
		"f**o", "foo bar", "{a,b}", "{foo,b*}*", "*.{o,c}", "[x", "[", "{", "}", "{a", `\`, "é", "[é]", "??", "*o*", "{a}", `{a\,b}`,
		"***", "a**", "{,a}", "[b-a]", `\[x`, "[a-]", "[]a]", "[!]a]", "-", "{a,{b,foo}}", `tail\ `, "#h", "!b"}
)

func makeRepository(tb testing.TB, root string, r *rand.Rand) (dirs []string) {
	tb.Helper()
	pick := func(from []string) string { return from[r.IntN(len(from))] }
	dirs = []string{""}
	for range 2 + r.IntN(7) {
		d := filepath.Join(pick(dirs), pick(entryNames))
		if os.MkdirAll(filepath.Join(root, d), 0o755) == nil {
			dirs = append(dirs, d)
		}
	}
	for range 5 + r.IntN(25) {
		f, err := os.OpenFile(filepath.Join(root, pick(dirs), pick(entryNames)), os.O_CREATE|os.O_EXCL, 0o644)
		if err == nil {
			f.Close()
		}
	}
	write := func(dir, name string) {
		var b strings.Builder
		for range 1 + r.IntN(6) {
			b.WriteString(randomRule(r) + pick([]string{"\n", "\n", "\n", "\r\n"}))
		}
		if os.MkdirAll(filepath.Join(root, dir), 0o755) == nil {
			_ = os.WriteFile(filepath.Join(root, dir, name), []byte(b.String()), 0o644)
		}
	}
	for range 1 + r.IntN(4) {
		write(pick(dirs), pick([]string{".gitignore", ".gitignore", ".gitignore", ".ignore", ".rgignore"}))
	}
	if r.IntN(8) > 0 { // without, .gitignore does not count
		write(".git/info", "exclude")
	}
	if r.IntN(3) == 0 { // a repository within
		_ = os.MkdirAll(filepath.Join(root, pick(dirs), pick([]string{".git", ".git", ".jj"})), 0o755)
	}
	return dirs
}

func randomRule(r *rand.Rand) string {
	chance := func(percent int) bool { return r.IntN(100) < percent }
	parts := make([]string, []int{1, 1, 1, 2, 2, 3}[r.IntN(6)])
	for i := range parts {
		parts[i] = ruleElements[r.IntN(len(ruleElements))]
	}
	p := strings.Join(parts, "/")
	for _, c := range []struct {
		percent       int
		before, after string
	}{{25, "/", ""}, {25, "", "/"}, {10, "", "/**"}, {25, "!", ""}, {5, "", " "}, {4, "", `\ `}, {3, "# ", ""}, {2, "\ufeff", ""},
		{2, "", "\t"}, {2, "**/", ""}, {2, " ", ""}} {
		if chance(c.percent) {
			p = c.before + p + c.after
		}
	}
	return p
}
