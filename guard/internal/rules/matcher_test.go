package rules

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/integration/samples"
)

// matcherOf compiles gitignore lines relative to base, in one source.
func matcherOf(t testing.TB, base string, lines ...string) *Matcher {
	t.Helper()
	m := newMatcher(pathname.Exact)
	for _, line := range lines {
		p, err := compilePattern(line, base)
		if err != nil {
			t.Fatalf("compilePattern(%q): %v", line, err)
		}
		p.rule = &Rule{Text: line, file: "settings.json"}
		m.add(p)
	}
	return m
}

func TestMatcher(t *testing.T) {
	tests := []struct {
		patterns string // separated by spaces
		path     string // below /ws; a directory when it ends in "/"
		want     bool
	}{
		{".env", ".env", true},
		{".env", "a/b/.env", true},
		{".env", ".env.local", false},
		{".env", "environment.md", false},
		{".env", "x.env", false},
		{".env", ".env/inside", true},
		{"*.pem", "keys/a.pem", true},
		{"*.pem", "keys/a.pem.txt", false},
		{"/a", "a", true},
		{"/a", "b/a", false},
		{"a/b", "a/b", true},
		{"a/b", "x/a/b", false},
		{"secrets/", "secrets/x", true},
		{"secrets/", "secrets/", true},
		{"secrets/", "secrets", false},
		{"secrets/**", "secrets/a/b", true},
		{"secrets/**", "secrets/", false},
		{"secrets/**", "secretsx/a", false},
		{"**/x", "x", true},
		{"**/x", "a/b/x", true},
		{"a/**/x", "a/x", true},
		{"a/**/x", "a/b/c/x", true},
		{"a/**/x", "b/a/x", false},
		{"a*/x", "abc/x", true},
		{"a*/x", "a/b/x", false},
		{"id_*", "k/id_rsa", true},
		{"?x", "ax", true},
		{"?x", "x", false},
		{"?x", "éx", true},
		{"[a-c]1", "b1", true},
		{"[!a-c]1", "b1", false},
		{"[^a-c]1", "d1", true},
		{"[[:digit:]]x", "7x", true},
		{`\*`, "*", true},
		{`\*`, "a", false},
		{`\!a`, "!a", true},
		{"secrets/* !secrets/public", "secrets/a", true},
		{"secrets/* !secrets/public", "secrets/public", false},
		{"secrets/ !secrets/public", "secrets/public", true}, // cannot reopen below an excluded directory
		{"*.env !sample.env *.env", "sample.env", true},      // the last one counts
		{"**", "anything", true},
	}
	for _, tt := range tests {
		m := matcherOf(t, "/ws", strings.Fields(tt.patterns)...)
		path, dir := strings.CutSuffix(tt.path, "/")
		if got := m.Match("/ws/"+path, dir) != nil; got != tt.want {
			t.Errorf("patterns %q, path %q: match = %v, want %v", tt.patterns, tt.path, got, tt.want)
		}
	}
	m := matcherOf(t, "/ws", "x", "*.pem", "/a", "b/**")
	for _, path := range []string{"/x", "/ws-evil/x", "/a.pem", "/a", "/b/c", "/ws"} {
		if m.Match(path, false) != nil {
			t.Errorf("%s is outside of the base and must not match", path)
		}
	}
}

func TestInvalidPatterns(t *testing.T) {
	for _, text := range []string{"[", "a[b", `a\`, "", "!", "/", "a/[x/b", "[[:alpha:"} {
		if _, err := compilePattern(text, "/ws"); err == nil {
			t.Errorf("compilePattern(%q) succeeded, want an error", text)
		}
	}
}

// TestMatcherAgreesWithGit compares with git check-ignore, the reference for
// these patterns.
func TestMatcherAgreesWithGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed; it is the reference for gitignore patterns")
	}
	rounds := samples.Rounds(60)
	dir := t.TempDir()
	git(t, dir, nil, "init", "-q")
	names := []string{"a", "b", "ab", "a.b", "x.pem", "[a]", "!a", "*"}
	var paths []string
	for _, x := range names {
		for _, y := range names {
			for _, z := range []string{"", "a", "b.pem"} {
				paths = append(paths, strings.TrimSuffix(filepath.Join(x, y, z), "/"))
			}
		}
		paths = append(paths, x+"x")
	}
	for _, p := range paths {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(p)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range rounds {
		var lines []string
		for range 1 + rng.IntN(4) {
			if line := randomPattern(rng); line != "" {
				lines = append(lines, line)
			}
		}
		compareWithGit(t, dir, lines, paths)
	}
}

func randomPattern(rng *rand.Rand) string {
	pieces := []string{"a", "b", "*", "**", "/", "/", "?", "[ab]", "[!a]", ".b", "*.pem", "ab", `\*`, "x",
		"[[:alpha:]]", "***"}
	var b strings.Builder
	if rng.IntN(4) == 0 {
		b.WriteByte('!')
	}
	for range 1 + rng.IntN(5) {
		b.WriteString(pieces[rng.IntN(len(pieces))])
	}
	s := b.String()
	if strings.Contains(s, "//") || strings.Trim(s, "!/") == "" {
		return ""
	}
	for e := range strings.SplitSeq(strings.TrimPrefix(s, "!"), "/") {
		// gitignore(5) takes ** next to other text for *; git itself cuts the text
		// before it off first and then finds **/ where none was written.
		if strings.Contains(e, "**") && strings.Trim(e, "*") != "" {
			return ""
		}
	}
	return s
}

func compareWithGit(t *testing.T, dir string, lines, paths []string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, ".git/info/exclude"), []byte(strings.Join(lines, "\n")+"\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	ignored := map[string]bool{}
	out := git(t, dir, []byte(strings.Join(paths, "\x00")), "check-ignore", "--no-index", "--stdin", "-z")
	for p := range strings.SplitSeq(out, "\x00") {
		ignored[p] = true
	}
	m := matcherOf(t, dir, lines...)
	for _, p := range paths {
		info, err := os.Stat(filepath.Join(dir, p))
		isDir := err == nil && info.IsDir()
		if got := m.Match(filepath.Join(dir, p), isDir) != nil; got != ignored[p] {
			t.Errorf("patterns %q, path %q: match = %v, git says %v", lines, p, got, ignored[p])
		}
	}
}

func git(t *testing.T, dir string, stdin []byte, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	cmd.Stdin = bytes.NewReader(stdin)
	out, err := cmd.Output()
	if ee, ok := err.(*exec.ExitError); err != nil && (!ok || ee.ExitCode() != 1) { // check-ignore: 1 for no match
		t.Fatalf("git %q: %v", args, err)
	}
	return string(out)
}

// FuzzMatcher checks that a pattern neither panics nor matches outside of its
// base, and that a literal one matches exactly its path.
func FuzzMatcher(f *testing.F) {
	for _, s := range []string{"a/**/b", "[!a-z]*", `\[x`, "**", "!x", "é*", "[[:alpha:]]", "a[]-z]b"} {
		f.Add(s, "a/x/b")
	}
	f.Fuzz(func(t *testing.T, text, rel string) {
		p, err := compilePattern(text, "/ws")
		p.rule = &Rule{}
		if err == nil {
			m := newMatcher(pathname.Folded)
			m.add(p)
			path := filepath.Clean("/ws-evil/" + strings.Trim(rel, "/."))
			if pathname.Within(path, "/ws-evil") && m.Match(path, false) != nil {
				t.Errorf("%q matches %q outside of its base", text, path)
			}
			m.Match(filepath.Clean("/ws/"+rel), true)
		}
		clean := strings.Trim(filepath.Clean("/"+rel), "/")
		if clean == "" {
			return
		}
		l := literalPattern(clean, "/ws")
		l.rule = &Rule{}
		m := newMatcher(pathname.Exact)
		m.add(l)
		if m.Match("/ws/"+clean, false) == nil {
			t.Errorf("the literal pattern of %q does not match it", clean)
		}
	})
}

func BenchmarkMatcher(b *testing.B) {
	for _, n := range []int{10, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var lines []string
			for i := range n / 4 {
				lines = append(lines, fmt.Sprintf(".env%d", i), fmt.Sprintf("*.key%d", i), fmt.Sprintf("dir%d/**", i),
					fmt.Sprintf("src/a%d/*.gen.go", i))
			}
			m := matcherOf(b, "/ws", lines...)
			for b.Loop() {
				m.Match("/ws/src/internal/search/walk/walk_linux.go", false)
			}
		})
	}
}
