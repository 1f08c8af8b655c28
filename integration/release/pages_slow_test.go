//go:build slow

package release

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/toolhost/toolhost/integration/host"
)

// Limits of the pages, in words as wc counts them.
const (
	readmeWords = 1_200
	allWords    = 16_000 // of the pages in docs
)

// TestPages holds the pages to what they say. It runs every command that a page shows and compares what is printed, runs the
// rows of the tables of rules and the programs, parses the settings, and looks up links, flags and error texts.
//
// A block that begins with ```console is a transcript. One that begins with ```sh is run and must succeed. The line
// <!-- not run: REASON --> before a block exempts it. In what is printed … stands for any text, alone on a line for any lines;
// times, sizes, ids and tokens may differ.
func TestPages(t *testing.T) {
	pages := pageFiles(t)
	flags := &flagTable{t: t}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			p := &pageTest{text: string(text), file: page, flags: flags}
			p.links(t)
			p.flagsKnown(t)
			p.errorTexts(t)
			p.ruleRows(t)
			p.blocks(t)
		})
	}
	words := func(page string) int {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		return len(strings.Fields(string(text)))
	}
	if n := words(pages[0]); n > readmeWords {
		t.Errorf("the README has %d words, more than %d", n, readmeWords)
	}
	sum := 0
	for _, page := range pages[1 : len(pages)-1] {
		sum += words(page)
	}
	if sum > allWords {
		t.Errorf("the pages have %d words, more than %d", sum, allWords)
	}
}

// pageFiles lists the pages, the README first.
func pageFiles(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob(docs + "*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal("no pages are found", err)
	}
	return slices.Concat([]string{"../../README.md"}, pages, []string{"../../guard/sandbox/profiles/README.md"})
}

// A pageTest is one page under test.
type pageTest struct {
	text, file string
	flags      *flagTable
	world      *pageWorld
}

var (
	linkRef  = regexp.MustCompile(`\]\(([^):\s]+)\)`)
	anchor   = regexp.MustCompile(`[^a-z0-9 _-]`)
	fence    = regexp.MustCompile("(?ms)(^<!-- not run: [^\n]* -->\n)?^ *```([a-z]*)\n(.*?)^ *```$")
	toolCall = regexp.MustCompile(`(?m)(?:^|[\s` + "`" + `(/])toolhost ([a-z]+(?:-[a-z]+)*)((?:[^\n` + "`" +
		`|&;\\]|\\\n)*)`)
	flagName = regexp.MustCompile(`(?:^|[\s` + "`" + `\[(])(--[a-z][a-z-]+)`)
)

// links checks that each link to a file or to a heading leads somewhere.
func (p *pageTest) links(t *testing.T) {
	for _, m := range linkRef.FindAllStringSubmatch(p.text, -1) {
		name, heading, _ := strings.Cut(m[1], "#")
		target := p.file
		if name != "" {
			target = filepath.Join(filepath.Dir(p.file), name)
		}
		text, err := os.ReadFile(target)
		if info, statErr := os.Stat(target); statErr == nil && info.IsDir() {
			continue
		}
		if err != nil {
			t.Errorf("the link %s leads nowhere", m[1])
		} else if heading != "" && !slices.Contains(anchors(string(text)), heading) {
			t.Errorf("the link %s names no heading", m[1])
		}
	}
}

// anchors are the names that GitHub gives to the headings of a page.
func anchors(page string) []string {
	var names []string
	for line := range strings.Lines(page) {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && line[0] == '#' {
			names = append(names, strings.ReplaceAll(anchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), ""), " ", "-"))
		}
	}
	return names
}

// A flagTable holds the flags of each command of toolhost.
type flagTable struct {
	t     *testing.T
	mu    sync.Mutex
	known map[string][]string
}

// of lists the flags of a command; nil means that there is no such command.
func (f *flagTable) of(command string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if flags, ok := f.known[command]; ok {
		return flags
	}
	cmd := exec.Command(host.Binary, append(strings.Fields(command), "--help")...)
	cmd.Env = host.CleanEnv(host.TempDir(f.t))
	out, err := cmd.Output()
	if f.known == nil {
		f.known = map[string][]string{}
	}
	if err == nil && bytes.Contains(out, []byte("toolhost "+command)) {
		f.known[command] = append([]string{"--help", "--version"},
			regexp.MustCompile(`--[a-z][a-z-]+`).FindAllString(string(out), -1)...)
	} else {
		f.known[command] = nil
	}
	return f.known[command]
}

// flagsKnown checks that each command of toolhost which a page names exists and takes the flags that stand with it.
func (p *pageTest) flagsKnown(t *testing.T) {
	for _, m := range toolCall.FindAllStringSubmatch(p.commands(), -1) {
		command := m[1]
		if sub := regexp.MustCompile(`^ ([a-z]+)`).FindStringSubmatch(m[2]); sub != nil &&
			p.flags.of(command+" "+sub[1]) != nil {
			command += " " + sub[1]
		}
		m[2] = trailer.ReplaceAllString(m[2], "")
		known := p.flags.of(command)
		if known == nil {
			t.Errorf("%q: there is no command %s", strings.TrimSpace(m[0]), command)
			continue
		}
		for _, flag := range flagName.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(known, flag[1]) {
				t.Errorf("%q: %s has no flag %s", strings.TrimSpace(m[0]), command, flag[1])
			}
		}
	}
}

// commands is what a page shows in code but for what commands print.
func (p *pageTest) commands() string {
	var code []string
	for _, m := range fence.FindAllStringSubmatch(p.text, -1) {
		for line := range strings.Lines(dedent(m[3])) {
			if m[2] == "sh" || strings.HasPrefix(line, "$ ") {
				code = append(code, line)
			}
		}
	}
	for _, m := range regexp.MustCompile("`[^`\n]+`").FindAllString(fence.ReplaceAllString(p.text, ""), -1) {
		code = append(code, m+"\n")
	}
	return strings.Join(code, "")
}

// errorTexts checks that a message which a page explains is one that the program can say.
func (p *pageTest) errorTexts(t *testing.T) {
	_, table, ok := strings.Cut(p.text, "| it says |")
	if !ok {
		return
	}
	source := productSource(t)
	for _, row := range regexp.MustCompile("(?m)^\\| (?:4[0-9]+ )?`([^`]+)`").FindAllStringSubmatch(table, -1) {
		for part := range strings.SplitSeq(strings.ReplaceAll(row[1], " N ", "…"), "…") {
			if part = strings.Trim(part, " ()"); len(part) > 3 && !strings.Contains(source, part) &&
				!strings.HasPrefix(part, "Read-only file") {
				t.Errorf("nothing says %q", part)
			}
		}
	}
}

// ruleRows runs the rows of tables of rules: each must be what toolhost check says.
func (p *pageTest) ruleRows(t *testing.T) {
	var rows [][]string
	for _, table := range regexp.MustCompile(`\| rules \| call \| verdict \|\n(\|.*\n)*`).FindAllString(p.text, -1) {
		rows = append(rows, regexp.MustCompile(`(?m)^\| ?(.*?) ?\| (.*) \| (allow|ask|deny)\b.*\|$`).FindAllStringSubmatch(table, -1)...)
	}
	if len(rows) == 0 {
		return
	}
	if !host.Contained(t) {
		t.Log("the rules are not checked: nothing contains commands on this machine, so that most of them would be asked")
		return
	}
	w := newPageWorld(t)
	for _, row := range rows {
		if got := w.checked(t, row[1], row[2]); got != row[3] {
			t.Errorf("%s: %s, not %s", row[0], got, row[3])
		}
	}
}

// checked is what toolhost check says of a call under rules, both as the page writes them.
func (w *pageWorld) checked(t *testing.T, rules, call string) string {
	t.Helper()
	permissions := map[string]any{}
	for _, m := range regexp.MustCompile("(allow|ask|deny|mode) `([^`]*)`").FindAllStringSubmatch(rules, -1) {
		if m[1] == "mode" {
			permissions["defaultMode"] = m[2]
			continue
		}
		list, _ := permissions[m[1]].([]string)
		permissions[m[1]] = append(list, m[2])
	}
	settings, err := json.Marshal(map[string]any{"permissions": permissions})
	host.Must(t, err)
	// There /p is relative to the root.
	host.Must(t, os.WriteFile(filepath.Join(w.project, ".claude", "settings.json"), settings, 0o644))
	tool, text, _ := strings.Cut(strings.TrimSuffix(call, "`"), "`")
	args := map[string]any{"file_path": text}
	switch tool = strings.TrimSpace(tool); tool {
	case "":
		tool, args = "Bash", map[string]any{"command": text}
	case "Write":
		args["content"] = "x"
	case "Edit":
		args["old_string"], args["new_string"] = "a", "b"
	case "WebFetch":
		args = map[string]any{"url": text, "prompt": "x"}
	}
	input, err := json.Marshal(args)
	host.Must(t, err)
	cmd := exec.Command(host.Binary, "check", tool, string(input), "--root", w.project, "--trust-workspace")
	cmd.Env, cmd.Dir = w.env, w.project
	out, _ := cmd.Output() // the exit status says that a call would not run
	said, _, _ := strings.Cut(string(out), "\n")
	return said
}

// blocks runs the blocks of a page in order, in one home directory.
func (p *pageTest) blocks(t *testing.T) {
	for _, m := range fence.FindAllStringSubmatch(p.text, -1) {
		if m[1] != "" {
			t.Logf("%s\n%s", strings.TrimSpace(m[1]), m[3])
			continue
		}
		if p.world == nil {
			p.world = newPageWorld(t)
		}
		switch kind, code := m[2], dedent(m[3]); kind {
		case "console":
			p.world.transcript(t, code)
		case "sh":
			for _, command := range commandLines(code) {
				want := "…\n"
				if serves.MatchString(command) {
					want = "…\nlistening on …\n…\n"
				}
				p.world.run(t, command, want, true)
			}
		case "json":
			p.world.settings(t, code)
		case "python", "ts", "go":
			p.world.program(t, kind, code)
		case "text":
		default:
			t.Errorf("a block of an unknown kind, %q:\n%s", kind, code)
		}
	}
}

// dedent takes the indentation of the first line from all lines.
func dedent(code string) string {
	indent := code[:len(code)-len(strings.TrimLeft(code, " "))]
	return strings.TrimPrefix(strings.ReplaceAll("\n"+code, "\n"+indent, "\n"), "\n")
}

// commandLines are the commands of a block: a backslash at the end of a line continues it, a line that begins with # is left out.
func commandLines(code string) []string {
	var commands []string
	for line := range strings.Lines(strings.ReplaceAll(code, "\\\n", "")) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			commands = append(commands, line)
		}
	}
	return commands
}

// transcript runs the lines that begin with $ and compares what is printed with the lines that follow.
func (w *pageWorld) transcript(t *testing.T, code string) {
	for part := range strings.SplitSeq("\n"+code, "\n$ ") {
		if part == "" {
			continue
		}
		command, want, _ := strings.Cut(strings.ReplaceAll(part, "\\\n", ""), "\n")
		if want != "" && !strings.HasSuffix(want, "\n") {
			want += "\n"
		}
		w.run(t, command, want, false)
	}
}

// A pageWorld is a home directory with a project, and the servers that a page has started.
type pageWorld struct {
	home, project string
	env           []string
	ports         map[string]string // of the page, to those used
}

func newPageWorld(t *testing.T) *pageWorld {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", "pages.txtar"))
	host.Must(t, err)
	home := filepath.Join(host.TempDir(t), "me")
	for _, f := range archive.Files {
		file := filepath.Join(home, f.Name)
		host.Must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		host.Must(t, os.WriteFile(file, f.Data, 0o644))
	}
	bin := filepath.Join(home, "go", "bin")
	host.Must(t, os.MkdirAll(bin, 0o755))
	if os.Link(host.Binary, filepath.Join(bin, "toolhost")) != nil {
		host.Must(t, os.Symlink(host.Binary, filepath.Join(bin, "toolhost")))
	}
	env := []string{"HOME=" + home, "PATH=" + bin + ":" + os.Getenv("PATH"), "NO_COLOR=1", "LANG=C.UTF-8"}
	return &pageWorld{home: home, project: filepath.Join(home, "project"), env: env, ports: map[string]string{}}
}

var (
	serves  = regexp.MustCompile(`(^|\s)toolhost (http|console)\b`)
	port    = regexp.MustCompile(`\b(8377|9000|9464|8443)\b`)
	trailer = regexp.MustCompile(`\s+# .*$`)
)

// real is a text of a page with the names and ports of this run.
func (w *pageWorld) real(t *testing.T, text string) string {
	text = strings.ReplaceAll(text, "/home/me", w.home)
	return port.ReplaceAllStringFunc(text, func(p string) string {
		for w.ports[p] == "" {
			free := strconv.Itoa(20_000 + rand.IntN(10_000)) // below those that the kernel gives to connections meanwhile
			if l, err := net.Listen("tcp", "127.0.0.1:"+free); err == nil {
				w.ports[p] = free
				host.Must(t, l.Close())
			}
		}
		return w.ports[p]
	})
}

// shown is what was printed with the names and ports of the page.
func (w *pageWorld) shown(text string) string {
	text = strings.ReplaceAll(text, w.home, "/home/me")
	for page, used := range w.ports {
		text = regexp.MustCompile(`\b`+used+`\b`).ReplaceAllString(text, page)
	}
	return text
}

// run runs a command and compares what it prints. A server goes on until the test ends.
func (w *pageWorld) run(t *testing.T, command, want string, mustSucceed bool) {
	t.Helper()
	if contains := strings.Contains(command, "call Bash") || strings.Contains(command, "doctor") ||
		strings.Contains(command, "demo"); contains && !host.Contained(t) {
		t.Logf("not run where nothing contains commands: %s", command)
		return
	}
	line := trailer.ReplaceAllString(command, "")
	server := serves.MatchString(line) && !strings.Contains(line, "--help")
	if server && !strings.Contains(line, "--listen") {
		line = strings.Replace(line, "toolhost http", "toolhost http --listen 127.0.0.1:8377", 1)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	if server {
		line = "exec env " + line // variables may precede it
	}
	cmd := exec.CommandContext(ctx, "bash", "-c", w.real(t, line))
	cmd.Env, cmd.Dir = w.env, w.project
	cmd.WaitDelay = 10 * time.Second
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	host.Must(t, cmd.Start())
	exited := make(chan error, 1)
	go func() {
		exited <- cmd.Wait()
		in.Close()
	}()
	if server {
		t.Cleanup(func() { cancel(); io.Copy(io.Discard, out) })
	}
	pattern := w.pattern(want)
	var got []byte
	chunk := make([]byte, 32<<10)
	for {
		n, err := out.Read(chunk)
		got = append(got, chunk[:n]...)
		if server && len(want) > 1 && pattern.MatchString(w.normal(string(got))) {
			go io.Copy(io.Discard, out)
			return
		}
		if err != nil {
			break
		}
	}
	err := <-exited
	if !pattern.MatchString(w.normal(string(got))) {
		t.Errorf("$ %s\nprints\n%s\nnot\n%s", command, w.shown(string(got)), want)
	}
	var exit *exec.ExitError
	if err != nil && (mustSucceed || !errors.As(err, &exit)) {
		t.Errorf("$ %s\n%v\n%s", command, err, got)
	}
}

// volatile is what differs from run to run, with what stands for it.
var volatile = []struct{ found, stands string }{
	{`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?`, "TIME"},
	{`\bth_[A-Z0-9]{26}\b`, "TOKEN"},
	{`\b[0-9.]+ ?ms\b|"duration_ms":[0-9.]+`, "DURATION"},
	{`\b[0-9.]+ MiB\b`, "SIZE"},
	{`\b(process|line):[0-9a-f]{12}\b`, "SCOPE"},
	{`\b127\.\d+\.\d+\.\d+:\d{5}/`, "ADDRESS"},
}

func (w *pageWorld) normal(text string) string {
	text = w.shown(text)
	for _, v := range volatile {
		text = regexp.MustCompile(v.found).ReplaceAllString(text, v.stands)
	}
	return text
}

// pattern is the expression for what a page says is printed.
func (w *pageWorld) pattern(want string) *regexp.Regexp {
	expr := regexp.QuoteMeta(w.normal(want))
	expr = regexp.MustCompile(`(?m)^…\n`).ReplaceAllString(expr, `(?:[^\n]*\n)*?`)
	return regexp.MustCompile(`^` + strings.ReplaceAll(expr, "…", `[^\n]*`) + `$`)
}

// settings checks that a block of JSON that is a settings file is one that the program takes without a warning.
func (w *pageWorld) settings(t *testing.T, code string) {
	var top map[string]json.RawMessage
	if err := json.Unmarshal([]byte(code), &top); err != nil {
		t.Errorf("%v:\n%s", err, code)
	}
	if top["mcpServers"] != nil || top["servers"] != nil {
		return // of a client
	}
	file := filepath.Join(host.TempDir(t), "settings.json")
	host.Must(t, os.WriteFile(file, []byte(code), 0o644))
	cmd := exec.Command(host.Binary, "rules", "--root", w.project, "--settings", file)
	cmd.Env, cmd.Dir = w.env, w.project
	if out, err := cmd.CombinedOutput(); err != nil || bytes.Contains(out, []byte("warn")) {
		t.Errorf("%v\n%s\n%s", err, code, out)
	}
}

// program runs a program of a page. Its last comment says what it prints.
func (w *pageWorld) program(t *testing.T, language, code string) {
	want := regexp.MustCompile(`(?m)(?:#|//) prints: (.*)$`).FindStringSubmatch(code)
	if want == nil {
		t.Errorf("a comment must say what the program prints, as in: # prints: 1\n%s", code)
		return
	}
	dir, suffix, command := host.TempDir(t), language, []string{"python3"}
	here, err := filepath.Abs("../..")
	host.Must(t, err)
	switch language {
	case "go":
		command = []string{"go", "run"}
	case "ts": // without type annotations it is also JavaScript
		modules := os.Getenv("TOOLHOST_CLIENTS")
		if modules == "" {
			t.Log("not run: TOOLHOST_CLIENTS names no directory with @modelcontextprotocol/client")
			return
		}
		host.Must(t, os.Symlink(filepath.Dir(modules), filepath.Join(dir, "node_modules")))
		suffix, command = "mjs", []string{"node"}
	}
	file := filepath.Join(dir, "main."+suffix)
	host.Must(t, os.WriteFile(file, []byte(w.real(t, code)), 0o644))
	cmd := exec.Command(command[0], append(command[1:], file)...)
	cmd.Env, cmd.Dir = w.env, here
	if language == "go" {
		cmd.Env = append(os.Environ(), w.env[1:]...) // with the caches of Go
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), want[1]) {
		t.Errorf("%v\n%s\nprints\n%s", err, code, out)
	}
}

// TestSpelling has cspell look for misspelt words. It runs where TOOLHOST_CSPELL names the program.
func TestSpelling(t *testing.T) {
	cspell := os.Getenv("TOOLHOST_CSPELL")
	if cspell == "" {
		t.Skip("TOOLHOST_CSPELL does not name the program cspell")
	}
	files, err := filepath.Glob("../../builtin/doc/*.md")
	host.Must(t, err)
	args := []string{"lint", "--no-progress", "--no-summary", "--no-must-find-files", "--config",
		"testdata/cspell.json", "--root", "../.."}
	for _, file := range append(files, pageFiles(t)...) {
		path, err := filepath.Abs(file)
		host.Must(t, err)
		args = append(args, path)
	}
	if out, err := exec.Command(cspell, args...).CombinedOutput(); err != nil {
		t.Errorf("%v: correct the words, or add them to integration/release/testdata/words.txt\n%s", err, out)
	}
}

// productSource is the text of all Go files that are no tests.
var productSource = func() func(t *testing.T) string {
	var once sync.Once
	var source strings.Builder
	return func(t *testing.T) string {
		once.Do(func() {
			for _, dir := range []string{"builtin", "cmd", "guard", "mcpserver", "readstate", "resultstore"} {
				host.Must(t, filepath.WalkDir(filepath.Join("../..", dir), func(path string, _ os.DirEntry,
					err error) error {
					if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
						return err
					}
					raw, err := os.ReadFile(path)
					source.Write(raw)
					return err
				}))
			}
		})
		return source.String()
	}
}()
