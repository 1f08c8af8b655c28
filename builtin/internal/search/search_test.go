package search

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

// editorVariable makes the test binary the process that edits.
const editorVariable = "TOOLHOST_TEST_EDITOR"

func TestMain(m *testing.M) {
	if os.Getenv(editorVariable) != "" {
		runEditor(os.Stdin, os.Stdout)
		return
	}
	goleak.VerifyTestMain(m)
}

// writeTree writes files and returns their root.
func writeTree(tb testing.TB, files map[string]string) string {
	tb.Helper()
	root, err := filepath.EvalSymlinks(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	for name, content := range files {
		name = filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	return root
}

// quiet makes an engine that keeps nothing and has no global excludes.
func quiet(c Config) *Engine {
	c.GlobalIgnore, c.MaxKept = os.DevNull, -1
	return New(c)
}

// mustGrep answers a query, and sees to it that an engine made alike that
// keeps what it can gives the same answer.
func mustGrep(tb testing.TB, e *Engine, root string, q GrepQuery) *GrepResult {
	tb.Helper()
	q.Base = root
	if q.Path == "" {
		q.Path = root
	}
	r, err := e.Grep(context.Background(), q)
	if err != nil {
		tb.Fatalf("Grep(%q): %v", q.Pattern, err)
	}
	c := e.config
	c.MaxKept = 0
	twin := New(c)
	settle(tb, twin, root)
	kept, err := twin.Grep(context.Background(), q)
	if err := errors.Join(err, twin.Close()); err != nil {
		tb.Fatal(err)
	}
	if d := cmp.Diff(r, kept); d != "" {
		tb.Errorf("Grep(%q): (-walking +keeping)\n%s", q.Pattern, d)
	}
	return r
}

func TestGrepText(t *testing.T) {
	root := writeTree(t, map[string]string{
		"a/one.go":       "alpha\nbeta\r\ngamma\nalpha beta\n",
		"a.txt":          "beta\n\n\n\nbeta",
		"node/x.js":      "beta\n",
		".gitignore":     "node/\n",
		".git/HEAD":      "beta\n",
		".github/ci.yml": "beta: 1\n",
	})
	e := quiet(Config{})
	for _, tt := range []struct {
		name string
		q    GrepQuery
		want string
	}{
		{"content in path order", GrepQuery{Pattern: "beta", Mode: Content, LineNumbers: true},
			".github/ci.yml:1:beta: 1\na/one.go:2:beta\na/one.go:4:alpha beta\na.txt:1:beta\na.txt:5:beta\n"},
		{"without numbers", GrepQuery{Pattern: "gam", Mode: Content}, "a/one.go:gamma\n"},
		{"count", GrepQuery{Pattern: "beta", Mode: Count}, ".github/ci.yml:1\na/one.go:2\na.txt:2\n"},
		{"context", GrepQuery{Pattern: "^beta", Mode: Content, LineNumbers: true, Before: 1, After: 1, Globs: []string{"a.txt"}},
			"a.txt:1:beta\na.txt-2-\n--\na.txt-4-\na.txt:5:beta\n"},
		{"only what matches, and context", GrepQuery{Pattern: "b|ta", Only: true, Mode: Content, LineNumbers: true, Before: 1, Globs: []string{"a.txt"}},
			"a.txt:1:b\na.txt:1:ta\n--\na.txt-4-\na.txt:5:b\na.txt:5:ta\n"},
		{"a page of matches", GrepQuery{Pattern: "b|ta", Only: true, Mode: Content, Limit: 2, Offset: 1, Globs: []string{"a.txt"}}, "a.txt:ta\na.txt:b\n"},
		{"only what matches across lines", GrepQuery{Pattern: "ma\\nal|ta\r?\ng", Only: true, Multiline: true, Mode: Content, LineNumbers: true, Globs: []string{"*.go"}},
			"a/one.go:2:ta\na/one.go:3:g\na/one.go:3:ma\na/one.go:4:al\n"},
		{"nothing is no match", GrepQuery{Pattern: "a?", Only: true, Mode: Content, Globs: []string{"a.txt"}}, "a.txt:a\na.txt:a\n"},
		{"lines are counted", GrepQuery{Pattern: "b|ta", Only: true, Mode: Count, Globs: []string{"a.txt"}}, "a.txt:2\n"},
		{"end of a CRLF line", GrepQuery{Pattern: "beta$", Mode: Content, Globs: []string{"*.go"}}, "a/one.go:beta\na/one.go:alpha beta\n"},
		{"asked for returns", GrepQuery{Pattern: `\r$`, Mode: Count}, "a/one.go:1\n"},
		{"explicit ignored path", GrepQuery{Pattern: "beta", Scope: Scope{Path: filepath.Join(root, "node")}, Mode: Count}, "node/x.js:1\n"},
		{"explicit ignored file", GrepQuery{Pattern: "beta", Scope: Scope{Path: filepath.Join(root, "node", "x.js")}, Mode: Count}, "node/x.js:1\n"},
		{"explicit .git", GrepQuery{Pattern: "beta", Scope: Scope{Path: filepath.Join(root, ".git")}, Mode: Count}, ".git/HEAD:1\n"},
		{"glob that names an ignored directory", GrepQuery{Pattern: "beta", Globs: []string{"node/*.js"}, Mode: Count}, "node/x.js:1\n"},
		{"no_ignore", GrepQuery{Pattern: "beta", NoIgnore: true, Globs: []string{"*.js"}, Mode: Count}, "node/x.js:1\n"},
		{"braces are characters where nothing can be repeated", GrepQuery{Pattern: "x{y", Mode: Count}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, mustGrep(t, e, root, tt.q).Text); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func TestNotes(t *testing.T) {
	root := writeTree(t, map[string]string{
		".git/HEAD": "", ".gitignore": "out/\n*.log\n", "out/deep/a.txt": "needle\n", "out/b.txt": "", "x.log": "needle", "y.txt": "hay\n",
	})
	e := quiet(Config{MaxIgnored: 2})
	r := mustGrep(t, e, root, GrepQuery{Pattern: "needle"})
	if r.IgnoredFiles != 2 || !r.IgnoredMore || !strings.Contains(strings.Join(r.Notes, "\n"), "more than 2 ignored files were not searched: pass no_ignore") {
		t.Errorf("ignored files are not told: %+v", r)
	}
	r = mustGrep(t, quiet(Config{}), root, GrepQuery{Pattern: "needle"})
	if r.IgnoredFiles != 3 || r.IgnoredMore {
		t.Errorf("got %d ignored files, want 3: %+v", r.IgnoredFiles, r)
	}
	r = mustGrep(t, e, root, GrepQuery{Pattern: `hay\\.`})
	if !strings.Contains(strings.Join(r.Notes, "\n"), `pass hay\.`) {
		t.Errorf("no word on the double escape: %q", r.Notes)
	}
}

func TestNewestFirst(t *testing.T) {
	root := writeTree(t, map[string]string{"a": "x", "b": "x", "c": "x", "d": "y"})
	for i, name := range []string{"b", "c", "a"} {
		when := time.Unix(1_700_000_000+int64(i), 0)
		if err := os.Chtimes(filepath.Join(root, name), when, when); err != nil {
			t.Fatal(err)
		}
	}
	e := quiet(Config{})
	r := mustGrep(t, e, root, GrepQuery{Pattern: "x", Limit: 2})
	if r.Text != "a\nc\n" || r.NextOffset != 2 || r.Files != 3 {
		t.Errorf("first page: %+v", r)
	}
	if r = mustGrep(t, e, root, GrepQuery{Pattern: "x", Limit: 2, Offset: 2}); r.Text != "b\n" || r.NextOffset != 0 {
		t.Errorf("second page: %+v", r)
	}
	g, err := e.Glob(context.Background(), GlobQuery{Scope: Scope{Base: root, Path: root}, Pattern: "[a-c]", Limit: 2})
	if err != nil || g.Text != "a\nc\n" || g.Total != 3 || len(g.Notes) != 1 {
		t.Errorf("Glob: %+v, %v", g, err)
	}
}

func TestHiddenDoesNotExist(t *testing.T) {
	root := writeTree(t, map[string]string{
		"ok.txt": "secret\n", "deny.txt": "secret\n", "deny.bin": "secret\x00\n", "vault/a.txt": "secret\n",
		".git/HEAD": "", ".gitignore": "deny.log\n", "deny.log": "secret\n",
	})
	scope := Scope{Hidden: func(real string, dir bool) bool {
		name := filepath.Base(real)
		return strings.HasPrefix(name, "deny") || name == "vault" && dir
	}}
	e := quiet(Config{})
	for _, mode := range []Mode{FilesWithMatches, Content, Count} {
		for _, noIgnore := range []bool{false, true} {
			r := mustGrep(t, e, root, GrepQuery{Scope: scope, Pattern: "secret", Mode: mode, NoIgnore: noIgnore})
			if r.Files != 1 || r.Binary+r.Unreadable+r.IgnoredFiles != 0 || !strings.HasPrefix(r.Text, "ok.txt") ||
				len(r.Notes) > 0 {
				t.Errorf("mode %d: %+v", mode, r)
			}
		}
	}
	if r := mustGrep(t, e, root, GrepQuery{Scope: scope, Pattern: "nothing"}); r.IgnoredFiles != 0 {
		t.Errorf("a denied file counts as ignored: %+v", r)
	}
	scope.Base = root
	for _, p := range []string{"**", "vault/*", "deny.txt", "vault/a.txt"} {
		scope.Path = root
		g, err := e.Glob(context.Background(), GlobQuery{Scope: scope, Pattern: p})
		if err != nil || strings.Contains(g.Text, "deny") || strings.Contains(g.Text, "vault") ||
			g.Total != len(g.Paths) {
			t.Errorf("Glob(%q): %+v, %v", p, g, err)
		}
	}
	for _, name := range []string{"deny.txt", "vault", "absent"} {
		scope.Path = filepath.Join(root, name)
		_, err := e.Grep(context.Background(), GrepQuery{Scope: scope, Pattern: "x"})
		if !errors.Is(err, ErrScope) || !strings.Contains(err.Error(), "no such file") {
			t.Errorf("%s: %v; want it not to exist", name, err)
		}
	}
}

func TestLongLines(t *testing.T) {
	long := strings.Repeat("x", 9<<20) + "é needle é" + strings.Repeat("y", 9<<20)
	root := writeTree(t, map[string]string{"one-line.js": long, "bad.txt": "needle \xff" + strings.Repeat("z", 70_000) +
		"\nneedle\n"})
	r := mustGrep(t, quiet(Config{}), root, GrepQuery{Pattern: "needle", Mode: Content, LineNumbers: true})
	lines := strings.Split(strings.TrimSuffix(r.Text, "\n"), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "bad.txt:1:needle \uFFFDz") || lines[1] != "bad.txt:2:needle" ||
		!strings.Contains(lines[2], "xé needle éy") {
		t.Fatalf("got %.2000q", lines)
	}
	for _, l := range lines {
		if len(l) > 600 {
			t.Errorf("a line of %d bytes", len(l))
		}
	}
	r = mustGrep(t, quiet(Config{}), root, GrepQuery{Pattern: "(needle|.)", Only: true, Mode: Content, Limit: 3, Globs: []string{"*.js"}})
	if r.Text != strings.Repeat("one-line.js:x\n", 3) {
		t.Errorf("matches of a long line: %.2000q", r.Text)
	}
}

func TestScopeErrors(t *testing.T) {
	root := writeTree(t, map[string]string{"f": ""})
	e := quiet(Config{})
	for _, path := range []string{"relative", filepath.Join(root, "gone"), filepath.Join(root, "gone", "deeper"),
		filepath.Join(root, "f", "x")} {
		if _, err := e.Grep(context.Background(), GrepQuery{Scope: Scope{Base: root, Path: path}, Pattern: "x"}); !errors.Is(err, ErrScope) {
			t.Errorf("Grep in %s: %v", path, err)
		}
		if _, err := e.Glob(context.Background(), GlobQuery{Scope: Scope{Base: root, Path: path}, Pattern: "x"}); !errors.Is(err, ErrScope) {
			t.Errorf("Glob in %s: %v", path, err)
		}
	}
	for _, q := range []GrepQuery{{Pattern: "("}, {Pattern: "x", Types: []string{"zz9"}},
		{Pattern: "x", Globs: []string{"{a"}}} {
		q.Base, q.Path = root, root
		if _, err := e.Grep(context.Background(), q); err == nil {
			t.Errorf("%+v: no error", q)
		}
	}
}

func TestCancelAndTimeout(t *testing.T) {
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("%d.txt", i)] = strings.Repeat("abcdefghij\n", 2000)
	}
	root := writeTree(t, files)
	e := quiet(Config{})
	q := GrepQuery{Scope: Scope{Base: root, Path: root}, Pattern: `(\w\w?){12}z`, Mode: Count}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := e.Grep(ctx, q); !errors.Is(err, context.Canceled) {
		t.Errorf("Grep with a cancelled context: %v", err)
	}
	if _, err := e.Glob(ctx, GlobQuery{Scope: q.Scope, Pattern: "*"}); !errors.Is(err, context.Canceled) {
		t.Errorf("Glob with a cancelled context: %v", err)
	}
	q.Timeout = time.Nanosecond
	r, err := e.Grep(context.Background(), q)
	if err != nil || !r.TimedOut || !strings.Contains(strings.Join(r.Notes, "\n"), "partial") {
		t.Errorf("time-out: %+v, %v", r, err)
	}
}

func TestGlobQuery(t *testing.T) {
	root := writeTree(t, map[string]string{
		"main.go": "", "pkg/a.go": "", "pkg/deep/b.go": "", "pkg/a.ts": "", "node_modules/m/i.js": "", ".gitignore": "node_modules\n", ".git/HEAD": "",
	})
	e := quiet(Config{})
	for _, tt := range []struct {
		pattern string
		want    []string
	}{
		{"*.go", []string{"main.go", "pkg/a.go", "pkg/deep/b.go"}},
		{"./*.go", []string{"main.go"}},
		{"**/*.go", []string{"main.go", "pkg/a.go", "pkg/deep/b.go"}},
		{"pkg/*.{go,ts}", []string{"pkg/a.go", "pkg/a.ts"}},
		{"pkg/", []string{"pkg/a.go", "pkg/a.ts", "pkg/deep/b.go"}},
		{"pkg/**", []string{"pkg/a.go", "pkg/a.ts", "pkg/deep/b.go"}},
		{"pkg/a.go", []string{"pkg/a.go"}},
		{"a.go", []string{"pkg/a.go"}},
		{filepath.ToSlash(root) + "/pkg/*.ts", []string{"pkg/a.ts"}},
		{"*.js", nil},
		{"node_modules/**/*.js", []string{"node_modules/m/i.js"}},
		{"pkg/nothing/*.go", nil},
		{"main.go/x", nil},
		{".git/*", []string{".git/HEAD"}},
		{"?ain.go", []string{"main.go"}},
	} {
		r, err := e.Glob(context.Background(), GlobQuery{Scope: Scope{Base: root, Path: root}, Pattern: tt.pattern})
		if err != nil {
			t.Errorf("Glob(%q): %v", tt.pattern, err)
			continue
		}
		slices.Sort(r.Paths)
		if !slices.Equal(r.Paths, tt.want) || r.Total != len(tt.want) {
			t.Errorf("Glob(%q) = %q, total %d; want %q", tt.pattern, r.Paths, r.Total, tt.want)
		}
	}
	r, _ := e.Glob(context.Background(), GlobQuery{Scope: Scope{Base: root, Path: root}, Pattern: "*.js"})
	if r.IgnoredFiles != 1 || len(r.Notes) != 1 {
		t.Errorf("the ignored file is not told: %+v", r)
	}
	for _, p := range []string{"", "../x", "a/../../x", "/etc/*", "[a", "{a", "a}", "a\\"} {
		if _, err := e.Glob(context.Background(), GlobQuery{Scope: Scope{Base: root, Path: root}, Pattern: p}); !errors.Is(err, ErrGlob) {
			t.Errorf("Glob(%q): %v", p, err)
		}
	}
}

func TestLimits(t *testing.T) {
	root := writeTree(t, map[string]string{"big.txt": strings.Repeat("hit\n", 200_000), "small.txt": "hit\n"})
	r := mustGrep(t, quiet(Config{MaxFile: 1 << 19}), root, GrepQuery{Pattern: "hit", Mode: Count})
	if r.TooLarge != 1 || r.Text != "small.txt:1\n" || !strings.Contains(strings.Join(r.Notes, "\n"), "big.txt") {
		t.Errorf("file beyond the limit: %+v", r)
	}
	r = mustGrep(t, quiet(Config{MaxText: 1000}), root, GrepQuery{Pattern: "hit", Mode: Content})
	if r.NextOffset == 0 || r.NextOffset != r.Shown || len(r.Text) > 1100 {
		t.Errorf("result beyond the limit: %d bytes, %+v", len(r.Text), r.NextOffset)
	}
}

func TestExcludesFile(t *testing.T) {
	for _, tt := range []struct{ config, want string }{
		{"[core]\n\texcludesFile = ~/.ignore\n", "~/.ignore"},
		{"[user]\nexcludesfile = no\n[Core]\n  EXCLUDESFILE=\"/a b\"\n", "/a b"},
		{"", ""},
	} {
		if got := excludesFile([]byte(tt.config)); got != tt.want {
			t.Errorf("excludesFile(%q) = %q, want %q", tt.config, got, tt.want)
		}
	}
}

func TestClip(t *testing.T) {
	line := append(bytes.Repeat([]byte("é"), 50), "needle"...)
	line = append(line, bytes.Repeat([]byte("é"), 50)...)
	for at := range len(line) + 1 {
		got := string(clip(nil, line, 20, at))
		if strings.ToValidUTF8(got, "!") != got || len(got) > 70 {
			t.Errorf("clip at %d: %q", at, got)
		}
	}
}
