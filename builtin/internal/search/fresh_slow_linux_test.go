//go:build slow

package search

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/toolhost/toolhost/integration/samples"
)

// scenes is how many trees TestFreshness makes: every kind of scene and one
// engine with too few watches.
const scenes = 3

// randomEdits is how many edits are each followed by a query, in each scene.
const randomEdits = 1_000

// editor is the other process.
type editor struct {
	to   *json.Encoder
	from *json.Decoder
}

func startEditor(tb testing.TB) *editor {
	tb.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), editorVariable+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	return &editor{json.NewEncoder(in), json.NewDecoder(bufio.NewReader(out))}
}

// do makes a change. Many of the random ones cannot be made: that is told.
func (e *editor) do(tb testing.TB, ed edit) string {
	tb.Helper()
	if err := e.to.Encode(ed); err != nil {
		tb.Fatal(err)
	}
	var answer string
	if err := e.from.Decode(&answer); err != nil {
		tb.Fatal(err)
	}
	return answer
}

// scene is a tree in which things change, and what is above it.
type scene struct {
	outer, root string
	hides       bool
	r           *rand.Rand
}

var sceneNames = []string{"a", "b", "c.go", "d.go", "e.txt", "lib", "src", "build", "x.log", ".hid", "deep", "f.md"}

func newScene(tb testing.TB, seed uint64) *scene {
	outer := writeTree(tb, map[string]string{"elsewhere/a": "foo\n", "elsewhere/b/c.go": "bar foo\n"})
	tb.Cleanup(func() { openUp(outer) })
	s := &scene{outer, filepath.Join(outer, "in", "root"), seed%2 == 1, rand.New(rand.NewPCG(seed, 5))}
	for _, name := range []string{".git/info", "src"} {
		if err := os.MkdirAll(filepath.Join(s.root, name), 0o755); err != nil {
			tb.Fatal(err)
		}
	}
	for range 60 {
		p := s.path(s.root)
		_ = os.MkdirAll(filepath.Dir(p), 0o755)
		_ = os.WriteFile(p, []byte(s.text()), 0o644)
	}
	return s
}

func (s *scene) path(root string) string {
	p := root
	for range 1 + s.r.IntN(3) {
		p = filepath.Join(p, sceneNames[s.r.IntN(len(sceneNames))])
	}
	return p
}

// existing is the path of something that is there, mostly.
func (s *scene) existing() string {
	p := s.root
	for range 1 + s.r.IntN(4) {
		entries, err := os.ReadDir(p)
		if err != nil || len(entries) == 0 {
			return p
		}
		p = filepath.Join(p, entries[s.r.IntN(len(entries))].Name())
	}
	if p == filepath.Join(s.root, ".git") {
		return s.path(s.root)
	}
	return p
}

func (s *scene) text() string {
	words := []string{"foo", "bar", "needle", "func main", "\n", "\n", "TODO", "mask", "Kelvin", "K", "x\x00y", "é"}
	var b strings.Builder
	for range s.r.IntN(30) {
		w := s.r.IntN(len(words))
		if w == 10 && s.r.IntN(4) > 0 {
			w = 0
		}
		b.WriteString(words[w] + " ")
	}
	return b.String()
}

func (s *scene) rules() string {
	var b strings.Builder
	for range s.r.IntN(4) {
		b.WriteString([]string{"", "", "!", "/"}[s.r.IntN(4)] + append(sceneNames, "*.go", "*.log", "**/b",
			"src/*")[s.r.IntN(len(sceneNames)+4)] + "\n")
	}
	return b.String()
}

// next is a random change.
func (s *scene) next() edit {
	at := int64(s.r.IntN(40))
	ops := []edit{
		{Op: "write", Path: s.path(s.root), Text: s.text()},
		{Op: "write", Path: s.existing(), Text: s.text()},
		{Op: "append", Path: s.existing(), Text: s.text()},
		{Op: "pwrite", Path: s.existing(), Text: "foo", At: at},
		{Op: "truncate", Path: s.existing(), At: at},
		{Op: "fallocate", Path: s.existing(), At: at + 1},
		{Op: "copyrange", Path: s.existing(), To: s.existing()},
		{Op: "save", Path: s.existing(), Text: s.text()},
		{Op: "save", Path: s.path(s.root), Text: s.text()},
		{Op: "rename", Path: s.existing(), To: s.path(s.root)},
		{Op: "rename", Path: s.existing(), To: s.existing()},
		{Op: "rename", Path: s.existing(), To: s.path(filepath.Join(s.outer, "elsewhere"))},
		{Op: "rename", Path: s.path(filepath.Join(s.outer, "elsewhere")), To: s.path(s.root)},
		{Op: "link", Path: s.existing(), To: s.path(s.root)},
		{Op: "symlink", Path: s.path(s.root), To: s.existing()},
		{Op: "remove", Path: s.existing()},
		{Op: "mkdir", Path: s.path(s.root)},
		{Op: "fifo", Path: s.path(s.root)},
		{Op: "chmod", Path: s.existing(), Mode: []uint32{0o600, 0o755, 0o444}[s.r.IntN(3)]},
		{Op: "utimes", Path: s.existing(), At: at},
		{Op: "write", Path: filepath.Join(filepath.Dir(s.existing()), []string{".gitignore", ".ignore", ".rgignore"}[s.r.IntN(3)]), Text: s.rules()},
		{Op: "remove", Path: filepath.Join(filepath.Dir(s.existing()), []string{".gitignore", ".ignore", ".rgignore"}[s.r.IntN(3)])},
	}
	rare := []edit{
		{Op: "write", Path: filepath.Join(s.root, ".git", "info", "exclude"), Text: s.rules()},
		{Op: "write", Path: filepath.Join(s.outer, "in", ".ignore"), Text: s.rules()},
		{Op: "write", Path: filepath.Join(s.outer, "global"), Text: s.rules()},
		{Op: "rename", Path: filepath.Join(s.root, ".git"), To: filepath.Join(s.root, "src", ".git")},
		{Op: "rename", Path: filepath.Join(s.root, "src", ".git"), To: filepath.Join(s.root, ".git")},
		{Op: "symlink", Path: filepath.Join(s.root, "src", ".ignore"), To: "../e.txt"},
		{Op: "write", Path: filepath.Join(s.root, "e.txt"), Text: s.rules()},
		{Op: "rename", Path: s.root, To: s.root + "2"},
		{Op: "mkdir", Path: s.root},
	}
	if s.r.IntN(12) == 0 {
		return rare[s.r.IntN(len(rare))]
	}
	return ops[s.r.IntN(len(ops))]
}

// query is a random query, as a function of the engine.
func (s *scene) query() (string, func(e *Engine) (any, error)) {
	scope := Scope{Base: s.root, Path: s.root}
	if s.r.IntN(5) == 0 {
		scope.Path = filepath.Dir(s.existing())
		if real, err := filepath.EvalSymlinks(scope.Path); err != nil || real != scope.Path {
			scope.Path = s.root
		}
	}
	if s.hides != (s.r.IntN(25) == 0) { // now and then under the rules of another
		scope.Hidden, scope.HiddenTag = func(real string, dir bool) bool { return filepath.Base(real) == "b" }, "b"
	}
	noIgnore := s.r.IntN(6) == 0
	if s.r.IntN(4) == 0 {
		q := GlobQuery{Scope: scope, Pattern: []string{"**", "*.go", "src/**", "**/b", "lib/*/*"}[s.r.IntN(5)],
			NoIgnore: noIgnore, Limit: s.r.IntN(5) * 4}
		return fmt.Sprintf("%+v", q), func(e *Engine) (any, error) { return e.Glob(context.Background(), q) }
	}
	q := GrepQuery{Scope: scope, Mode: Mode(s.r.IntN(3)), LineNumbers: true, NoIgnore: noIgnore}
	q.Pattern = []string{"foo", "needle", "func main", "(?i)mask|kelvin", "nothing at all", `\w+ foo`,
		"K|TODO"}[s.r.IntN(7)]
	if s.r.IntN(5) == 0 {
		q.Globs = [][]string{{"*.go"}, {"!src"}, {"build/**"}, {"*.log"}}[s.r.IntN(4)]
	}
	if s.r.IntN(8) == 0 {
		q.Types = []string{"go"}
	}
	return fmt.Sprintf("%+v", q), func(e *Engine) (any, error) { return e.Grep(context.Background(), q) }
}

// TestFreshness lets another process change files at random; each change is
// followed at once by a query, whose answer must be the one of a fresh walk.
func TestFreshness(t *testing.T) {
	edits := samples.Rounds(randomEdits)
	other := startEditor(t)
	used := 0
	for seed := range uint64(scenes) {
		s := newScene(t, seed)
		c := Config{GlobalIgnore: filepath.Join(s.outer, "global"), Workers: 2}
		if seed%3 == 2 {
			c.MaxWatches = 4
		}
		kept := New(c)
		c.MaxKept = -1
		fresh := New(c)
		settle(t, kept, s.root)
		var past []string
		for i := range edits {
			ed := s.next()
			past = append(past, fmt.Sprintf("%+v: %s", ed, other.do(t, ed)))
			what, query := s.query()
			if i%20 == 0 { // the root itself comes and goes
				settle(t, kept, s.root)
			}
			if kept.Stats(s.root).State != Walking {
				used++
			}
			got, err := query(kept)
			want, errWant := query(fresh)
			if fmt.Sprint(err) != fmt.Sprint(errWant) {
				t.Fatalf("seed %d, edit %d: %s\n got error %v\nwant error %v\nafter %s", seed, i, what, err,
					errWant, last(past))
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("seed %d, edit %d: %s\n(-fresh +kept)\n%s\nafter %s", seed, i, what, d, last(past))
			}
		}
		if err := errors.Join(kept.Close(), fresh.Close()); err != nil {
			t.Error(err)
		}
	}
	if used < scenes*edits*3/4 {
		t.Errorf("the list was kept for %d queries only of %d", used, scenes*edits)
	}
}

func last(lines []string) string {
	return strings.Join(slices.Clone(lines[max(0, len(lines)-12):]), "\n")
}
