package search

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/toolhost/toolhost/integration/samples"
)

// ripgrep returns the program that is the reference: $TOOLHOST_RG, or rg of
// version 15 on the path.
func ripgrep(tb testing.TB) string {
	tb.Helper()
	name := os.Getenv("TOOLHOST_RG")
	if name == "" {
		name, _ = exec.LookPath("rg")
	}
	if name == "" {
		tb.Skip("no ripgrep to compare with: put rg 15 on the PATH or its path into TOOLHOST_RG")
	}
	out, err := exec.Command(name, "--version").Output()
	if err != nil || !strings.HasPrefix(string(out), "ripgrep 15.") {
		tb.Skipf("%s is not ripgrep 15: %.40q, %v", name, out, err)
	}
	return name
}

// goSource is Go's own source tree.
func goSource(tb testing.TB) string {
	tb.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		tb.Skip("no go command to find Go's source tree with")
	}
	return filepath.Join(strings.TrimSpace(string(out)), "src")
}

// runRG runs ripgrep in a directory, as the engine is meant to behave. Exit
// code 1 means no match, 2 a file that could not be read.
func runRG(tb testing.TB, rg, dir string, args ...string) string {
	tb.Helper()
	cmd := exec.Command(rg, append([]string{"--no-config", "--hidden", "--no-messages", "--color=never", "--no-heading",
		"--with-filename", "-g", "!.git"}, args...)...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if ee, ok := err.(*exec.ExitError); ok && (ee.ExitCode() == 1 || ee.ExitCode() == 2 && stderr.Len() == 0) {
		err = nil
	}
	if err != nil {
		tb.Fatalf("rg %q: %v\n%s", args, err, stderr.Bytes())
	}
	return string(out)
}

// grepArgs are the arguments of ripgrep for a query.
func grepArgs(q GrepQuery) []string {
	var args []string
	add := func(on bool, a ...string) {
		if on {
			args = append(args, a...)
		}
	}
	add(q.Mode == FilesWithMatches, "-l")
	add(q.Mode == Count, "-c")
	add(q.Only, "-o")
	add(q.LineNumbers, "-n")
	add(!q.LineNumbers, "-N")
	add(q.IgnoreCase, "-i")
	add(q.Multiline, "-U", "--multiline-dotall")
	add(q.NoIgnore, "--no-ignore")
	add(!strings.Contains(q.Pattern, `\r`), "--crlf")
	add(q.Before > 0, "-B", fmt.Sprint(q.Before))
	add(q.After > 0, "-A", fmt.Sprint(q.After))
	for _, g := range q.Globs {
		add(true, "-g", g)
	}
	for _, t := range q.Types {
		add(true, "-t", t)
	}
	add(true, "--sort", "path", "-e", q.Pattern, ".")
	return args
}

// normal brings the output of either side into one form: without what ripgrep
// says of a binary file between its matches, and without carriage returns.
func normal(out string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.ToValidUTF8(out, "\uFFFD")) {
		if strings.Contains(line, ": WARNING: stopped searching binary file after match") ||
			strings.Contains(line, ": binary file matches") {
			continue
		}
		line = strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "./")
		b.WriteString(strings.TrimRight(line, "\r") + "\n")
	}
	return b.String()
}

// withoutEmpty drops the empty matches, which ripgrep 15 prints within lines and leaves
// out across them, of an output with line numbers and without context.
func withoutEmpty(out string) string {
	var b strings.Builder
	for line := range strings.Lines(out) {
		if !emptyMatch.MatchString(line) {
			b.WriteString(line)
		}
	}
	return b.String()
}

var emptyMatch = regexp.MustCompile(`^[^:]*:[0-9]+:\n$`)

func sorted(text string) string {
	lines := strings.SplitAfter(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// compareGrep fails when the engine and ripgrep differ on a query.
func compareGrep(t *testing.T, es engines, rg, root string, q GrepQuery) {
	t.Helper()
	q.Scope = Scope{Base: root, Path: root}
	want := normal(runRG(t, rg, root, grepArgs(q)...))
	if q.Mode == FilesWithMatches {
		want = sorted(want)
	}
	if q.Only {
		want = withoutEmpty(want)
	}
	for name, e := range es {
		if name != walking {
			settle(t, e, root)
		}
		got, err := e.Grep(context.Background(), q)
		if err != nil {
			t.Errorf("%s: Grep: %v", name, err)
			return
		}
		have := normal(got.Text)
		if q.Mode == FilesWithMatches {
			have = sorted(have)
		}
		if want != have {
			t.Errorf("%s: %s: rg %q\n%s", name, filepath.Base(root), grepArgs(q), firstDifference(want, have))
		}
	}
}

// engines are made alike, except for what they keep.
type engines map[string]*Engine

// walking is the engine that keeps nothing.
const walking = "walking"

func newEngines(tb testing.TB, c Config) engines {
	tb.Helper()
	c.GlobalIgnore = os.DevNull
	es := engines{"keeping": New(c)}
	c.MaxKept = -1
	es[walking] = New(c)
	for _, e := range es {
		tb.Cleanup(func() {
			if err := e.Close(); err != nil {
				tb.Error(err)
			}
		})
	}
	return es
}

// settle waits until all is kept that an engine keeps of a root.
func settle(tb testing.TB, e *Engine, root string) {
	tb.Helper()
	e.cache.start(root, nil)
	settleKept(tb, e, root)
}

// settleKept waits until all is kept of a root, if the engine has begun to keep it.
func settleKept(tb testing.TB, e *Engine, root string) {
	tb.Helper()
	e.cache.mu.Lock()
	h := e.cache.find(root)
	e.cache.mu.Unlock()
	if h == nil || h.tree == nil {
		return
	}
	for p := h.tree.contents.progress; ; {
		p.mu.Lock()
		if p.now == Ready || p.now == Walking {
			p.mu.Unlock()
			return
		}
		if p.changed == nil {
			p.changed = make(chan struct{})
		}
		changed := p.changed
		p.mu.Unlock()
		<-changed
	}
}

// firstDifference shows where two texts part.
func firstDifference(want, have string) string {
	w, h := strings.SplitAfter(want, "\n"), strings.SplitAfter(have, "\n")
	i := 0
	for i < min(len(w), len(h)) && w[i] == h[i] {
		i++
	}
	at := func(lines []string) string {
		return fmt.Sprintf("%.600q", lines[min(i, len(lines)-1):min(i+3, len(lines))])
	}
	return fmt.Sprintf("line %d of %d and %d\nrg     %s\nengine %s", i+1, len(w), len(h), at(w), at(h))
}

// patterns of every kind that takes a road of its own through the engine.
var patterns = []string{
	`sync\.Mutex`, `func \(.*\) String\(\) string`, `TODO`, `return nil, err`, `\bfoo\b`, `nosuchthinganywhere`,
	`(?i)unicode`, `(?i)mask`, `(?i)straße|kelvin`, `[A-Z]{3,}_[A-Z]+`, `^package \w+$`, `\d{4}-\d{2}-\d{2}`,
	`[a-z][0-9][a-z]_`, `\b[0-9]+[a-z]{3}[0-9]+\b`, `(?i)x[0-9a-f]{6}$`,
	`^$`, `^\s+$`, `;$`, `\}$`, `0x[0-9a-f]{8}`, `(read|write|close)All`, `import|export|require`, `\w+@\w+\.\w+`,
	`[^\x00-\x7F]`, `\p{Greek}`, `\p{Lu}\p{Ll}+Error`, `é`, `naïve|café`, `世`, `[α-ω]+`, `a.b`, `x*y`, `()`,
	`interface\{\}`, `"[^"]{30,}"`, `(?:a|b|c)d[ef]g`, `err != nil`, `\bif\b.*\bthen\b`, `[[:upper:]]{5}[[:digit:]]`,
	`[a-z&&[^aeiou]]{6}`, `[\w--\d]{12,}_`, `\u{e9}`, `\x41\x{42}`, `(?x) foo \s+ bar`, `(?s)a.b`,
	`\<type\>`, `\b{start}go`, `\Bing\b`, `(?i)KELVIN|ſ`, `s`, `e`, `\.`, `\t\t\treturn`, `foo$`, `\r$`,
	`\w{20,}`, `^.{200,}$`, `\S+\s\S+\s\S+==`, `(\w+)\.(\w+)\(\)\.(\w+)`, `(?-i)Foo`, `a{2,3}b?`, `.`, `\W\W\W\W\W\W`,
	`x|`, `(?i)[k-s]x`, `ı|İ`, `\pN\p{Pd}`, `(?U)a.*b`, `//.*[.]$`, `^\t*\}$`, `Write|Read|Close|Seek|Open`,
}

// noLateBinary leaves out files whose first NUL byte is beyond ripgrep's first
// buffer: with context lines, how far it searches them depends on how these
// move its buffer.
var noLateBinary = []string{"!{late,far}-binary.dat"}

func TestLinesAsRipgrep(t *testing.T) {
	rg := ripgrep(t)
	es := newEngines(t, Config{MaxLine: -1, MaxText: 1 << 30})
	generated := t.TempDir()
	makeTree(t, generated, 7)
	goTree := goSource(t)
	roots := []string{generated, filepath.Join(goTree, "encoding"), filepath.Join(goTree, "net", "http")}
	for i, p := range samples.Of(patterns, 1) {
		for k, root := range roots {
			for m, q := range []GrepQuery{
				{Mode: Content, LineNumbers: true}, {Mode: Count}, {Mode: FilesWithMatches},
				{Mode: Content, LineNumbers: true, Before: 2, After: 1, Globs: noLateBinary}, {Mode: Content, IgnoreCase: true},
			} {
				if !samples.Whole() && (i%len(roots) != k || i/len(roots)%5 != m) {
					continue
				}
				q.Pattern = p
				compareGrep(t, es, rg, root, q)
			}
		}
	}
}

func TestQueriesOnGoTree(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	rg := ripgrep(t)
	es := newEngines(t, Config{MaxLine: -1, MaxText: 1 << 30})
	root := goSource(t)
	if samples.Step(1) > 1 {
		root = filepath.Join(root, "net")
	}
	for i, q := range []GrepQuery{
		{Pattern: `sync\.Mutex`, Mode: Content, LineNumbers: true},
		{Pattern: `func \(.*\) String\(\) string`, Mode: Count},
		{Pattern: `TODO\(\w+\)`, Mode: Content, LineNumbers: true, After: 3},
		{Pattern: `\bgoroutine leak\b`, IgnoreCase: true, Mode: Content, LineNumbers: true, Before: 3, After: 3},
		{Pattern: `[a-z]+_[a-z]+_[a-z]+_[a-z]+`, Mode: Count},
		{Pattern: `import`, Types: []string{"go"}},
		{Pattern: `#include`, Types: []string{"c", "h"}, Mode: Count},
		{Pattern: `TEXT`, Globs: []string{"*.s"}, Mode: Count},
		{Pattern: `TEXT`, Globs: []string{"*.s", "!*_amd64.s"}, Mode: Count},
		{Pattern: `x`, Globs: []string{"crypto/**/*.go"}, Mode: Count},
		{Pattern: `x`, Globs: []string{"/crypto/*/*.go", "!*_test.go"}, Mode: Count},
		{Pattern: `x`, Globs: []string{"*.{md,txt}"}, Mode: Count},
		{Pattern: `x`, Globs: []string{"!testdata"}, Types: []string{"html", "js"}, Mode: Count},
		{Pattern: `func \w+\([^)]*\n`, Multiline: true, Mode: Content, LineNumbers: true, Globs: []string{"net/**"}},
		{Pattern: `\{\n\}`, Multiline: true, Mode: Count},
		{Pattern: `(?s)/\*.*?\*/`, Multiline: true, Mode: Content, LineNumbers: true, Globs: []string{"*.s"}},
		{Pattern: `return\s+nil\s+\}`, Multiline: true, Mode: Count},
		{Pattern: `^$\n^$`, Multiline: true, Mode: Count},
	} {
		if i%samples.Step(2) == 0 {
			compareGrep(t, es, rg, root, q)
		}
	}
}

var multilinePatterns = []string{
	`foo\nbar`, `(?s)foo.*?bar`, `\w+\s+\w+`, `\n\n`, `^\s*$`, `[^a]{40}`, `foo`, `^foo$`, `\}\n\}`, `a\n?b`, `(?m)^x`, `\s`,
	`(?s).`, `;\s*\n\s*return`, `foo.*?bar`, `(?-s)foo.*bar`, `a.b`, `\Aimport`, `x\z`, `x*`, `(\w+\n)+`, `\n`, `e\n`,
}

func TestMultilineAsRipgrep(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	rg := ripgrep(t)
	es := newEngines(t, Config{MaxLine: -1, MaxText: 1 << 30})
	root := t.TempDir()
	makeTree(t, root, 11)
	for i, p := range multilinePatterns {
		for m, q := range []GrepQuery{
			{Mode: Content, LineNumbers: true}, {Mode: Count}, {Mode: FilesWithMatches},
			{Mode: Content, LineNumbers: true, Before: 1, After: 2, Globs: noLateBinary},
		} {
			// Around empty matches ripgrep 15 prints context that belongs to none,
			// and counts by searching the printed lines again.
			if p == `^\s*$` && (q.Mode == Count || q.After > 0) || (i+m)%samples.Step(1) != 0 {
				continue
			}
			q.Pattern, q.Multiline = p, true
			compareGrep(t, es, rg, root, q)
		}
	}
}

func TestSelectionAsRipgrep(t *testing.T) {
	rg := ripgrep(t)
	es := newEngines(t, Config{MaxLine: -1, MaxText: 1 << 30})
	root := t.TempDir()
	makeTree(t, root, 3)
	for _, globs := range [][]string{
		{"*.js"}, {"*.log"}, {"!*.js"}, {"*.js", "!*.min.js"}, {"src/**"}, {"**/lib/*.ts"}, {"/src/*"}, {"node_modules"},
		{"**/node_modules/**"}, {"*.{ts,tsx}"}, {"lib/"}, {"!lib/"}, {"[a-m]*.ts"}, {"*"}, {"**"}, {"**/*"}, {".*"}, {"!.*"},
		{"*.js", "src/**", "!*.test.js"}, {"?.ts"}, {"build"}, {".github/**"}, {"src/*/lib"}, {"!*"},
	} {
		for _, q := range []GrepQuery{{}, {NoIgnore: true}, {Types: []string{"js"}}} {
			q.Pattern, q.Globs = "e", globs
			compareGrep(t, es, rg, root, q)
		}
	}
	for _, types := range []string{"js", "ts", "md", "json", "all", "make", "docker", "py"} {
		compareGrep(t, es, rg, root, GrepQuery{Pattern: ".", Types: []string{types}})
	}
}

// makeTree makes a tree as a package manager leaves it: many small files in
// ignored and other directories, and every kind of odd content and entry.
func makeTree(tb testing.TB, root string, seed uint64) {
	tb.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	write := func(name string, content []byte) {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(name, content, 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	words := strings.Fields(`foo bar Foo FOO function return import export require const type interface{} err != nil == => ; { } ( )
		"a string" 0xdeadbeef 2024-01-02 café naïve 世界 αβγ user@example.com TODO(x) mask Kelvin ſtraße KELVIN ab aab xy if then
		HTTP_STATUS sync.Mutex Unicode ABCDE1 longidentifierwithmanyletters_x // done. go going İı 4‐5 a-b`)
	line := func() string {
		var b strings.Builder
		b.WriteString(strings.Repeat("\t", r.IntN(4)))
		for range r.IntN(12) {
			b.WriteString(words[r.IntN(len(words))])
			b.WriteString([]string{" ", " ", ".", "", "\t", "(", ")"}[r.IntN(7)])
		}
		return b.String()
	}
	text := func(lines int, eol string) []byte {
		var b strings.Builder
		for range lines {
			b.WriteString(line() + eol)
		}
		return []byte(b.String())
	}
	if err := os.Mkdir(filepath.Join(root, ".git"), 0o755); err != nil {
		tb.Fatal(err)
	}
	dirs := []string{"", "src/", "src/lib/", "lib/", "node_modules/a/", "node_modules/b/dist/", "dist/", ".github/",
		"deep/er/lib/", "build/"}
	exts := []string{".js", ".ts", ".min.js", ".test.js", ".log", ".md", ".json", ".tsx", ".py", ""}
	for i := range 160 {
		name := dirs[r.IntN(len(dirs))] + string(rune('a'+r.IntN(26))) + fmt.Sprint(i) + exts[r.IntN(len(exts))]
		write(name, text(r.IntN(60), "\n"))
	}
	write(".gitignore", []byte("node_modules/\n*.log\n/dist\n!keep.log\nbuild\n"))
	write("src/.ignore", []byte("*.min.js\n!important.log\n"))
	write("src/.rgignore", []byte("b*.md\n"))
	write("keep.log", text(5, "\n"))
	write("src/important.log", text(5, "\n"))
	write("crlf.ts", text(40, "\r\n"))
	write("mixed.ts", append(text(10, "\r\n"), text(10, "\n")...))
	write("lone-cr.ts", text(10, "\r"))
	write("no-eol.ts", bytes.TrimSuffix(text(10, "\n"), []byte("\n")))
	write("bom.ts", append([]byte("\xef\xbb\xbf"), text(10, "\n")...))
	write("empty.ts", nil)
	write("newlines.ts", []byte("\n\n\n"))
	write("invalid.ts", []byte("foo \xff bar\nx\xfe\xfdy\nfoo\xe4\xb8\nok foo\n"))
	write("utf16le.txt", utf16Text(string(text(20, "\r\n")), false))
	write("utf16be.txt", utf16Text("foo bar\n世界 foo\U0001F600\nfoo$\n", true))
	write("binary.dat", append(append(text(3, "\n"), 0), text(3, "\n")...))
	write("late-binary.dat", append(append(text(2600, "\n"), 0), text(3, "\n")...))
	write("far-binary.dat", append(append(text(4000, "\n"), 0), text(1000, "\n")...))
	write("long.txt", append(append(bytes.Repeat([]byte("x foo yz "), 8_000), "é bar foo;"...), '\n'))
	write("wide.txt", text(1500, "\n"))
	oddEntries(tb, root)
}

func utf16Text(s string, big bool) []byte {
	out := []byte{0xff, 0xfe}
	if big {
		out = []byte{0xfe, 0xff}
	}
	for _, u := range utf16.Encode([]rune(s)) {
		if big {
			out = append(out, byte(u>>8), byte(u))
		} else {
			out = append(out, byte(u), byte(u>>8))
		}
	}
	return out
}
