package settle

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/guard/internal/pathname"
)

// A ground is a workspace with a keeper.
type ground struct {
	t          *testing.T
	state, dir string
	k          *Keeper
}

func newGround(t *testing.T) *ground {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := &ground{t: t, state: t.TempDir(), dir: dir}
	g.open()
	return g
}

func (g *ground) open() {
	g.k = Open(g.state, marksIn, slog.New(slog.DiscardHandler))
	g.t.Cleanup(func() { g.k.Close() })
}

// marksIn walks the whole directory for what package baseline finds while it looks for repositories.
func marksIn(dir string) (marks []string, listed uint64) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		rel := strings.TrimPrefix(path, dir)
		inGit := strings.Contains(pathname.Folded.Of(rel), string(filepath.Separator)+".git"+string(filepath.Separator))
		switch {
		case err != nil || rel == "":
		case inGit && d.Name() == "objects":
			return fs.SkipDir
		case inGit && IsGitState(d.Name()), !inGit && IsMark(d.Name()):
			marks = append(marks, path)
		}
		return nil
	})
	return marks, 0
}

// kill does to the keeper what SIGKILL does to its host.
func (g *ground) kill() {
	for _, p := range g.k.places {
		p.store.close()
	}
	g.k.places = map[string]*place{}
	g.open()
}

// call runs a function as a command, and returns the notes.
func (g *ground) call(do func()) string {
	g.t.Helper()
	c, notes, err := g.k.Begin([]string{g.dir}, false)
	if err != nil {
		g.t.Fatal(err)
	}
	do()
	return strings.Join(append(notes, c.End()...), "\n")
}

// begin begins a command.
func (g *ground) begin(keep bool) *Command {
	g.t.Helper()
	c, _, err := g.k.Begin([]string{g.dir}, keep)
	if err != nil {
		g.t.Fatal(err)
	}
	return c
}

func (g *ground) write(rel, text string) {
	g.t.Helper()
	path := filepath.Join(g.dir, rel)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		g.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		g.t.Fatal(err)
	}
}

// replace writes a file as git does: under another name first.
func (g *ground) replace(rel, text string) {
	g.t.Helper()
	g.remove(rel)
	g.write(rel, text)
}

func (g *ground) remove(rel string) {
	g.t.Helper()
	if err := os.RemoveAll(filepath.Join(g.dir, rel)); err != nil {
		g.t.Fatal(err)
	}
}

// tree returns what is in the workspace.
func (g *ground) tree() string {
	g.t.Helper()
	var list []string
	_ = filepath.WalkDir(g.dir, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(g.dir, path)
		switch {
		case err != nil:
			g.t.Error(err)
		case d.IsDir():
			list = append(list, rel+"/")
		case d.Type()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(path)
			list = append(list, rel+"->"+to)
		case d.Type().IsRegular():
			text, _ := os.ReadFile(path)
			list = append(list, rel+"="+string(text))
		default:
			list = append(list, fmt.Sprint(rel, " ", d.Type()))
		}
		return nil
	})
	return strings.Join(list[1:], " ")
}

func (g *ground) want(when, want string) {
	g.t.Helper()
	if got := g.tree(); got != want {
		g.t.Errorf("%s:\n%s, want\n%s", when, got, want)
	}
}

func TestHeld(t *testing.T) {
	base := func(g *ground) {
		g.write("a.txt", "a")
		g.write(".mcp.json", "old")
		g.write(".vscode/tasks.json", "old")
	}
	const outside = ".mcp.json=old .vscode/ .vscode/tasks.json=old a.txt=a"
	for what, c := range map[string]struct {
		do     func(g *ground)
		inside string
	}{
		"written":   {func(g *ground) { g.write(".mcp.json", "new") }, ".mcp.json=new .vscode/ .vscode/tasks.json=old a.txt=a"},
		"replaced":  {func(g *ground) { g.replace(".mcp.json", "new") }, ".mcp.json=new .vscode/ .vscode/tasks.json=old a.txt=a"},
		"removed":   {func(g *ground) { g.remove(".mcp.json") }, ".vscode/ .vscode/tasks.json=old a.txt=a"},
		"directory": {func(g *ground) { g.remove(".vscode") }, ".mcp.json=old a.txt=a"},
		"appeared":  {func(g *ground) { g.write(".envrc", "new") }, ".envrc=new .mcp.json=old .vscode/ .vscode/tasks.json=old a.txt=a"},
		"deep":      {func(g *ground) { g.write(".idea/x/y", "new") }, ".idea/ .idea/x/ .idea/x/y=new .mcp.json=old .vscode/ .vscode/tasks.json=old a.txt=a"},
		"link":      {func(g *ground) { g.remove(".mcp.json"); os.Symlink("a.txt", g.dir+"/.mcp.json") }, ".mcp.json->a.txt .vscode/ .vscode/tasks.json=old a.txt=a"},
		"link to a directory": {func(g *ground) { g.remove(".vscode"); os.Symlink(".", g.dir+"/.vscode") },
			".mcp.json=old .vscode->. a.txt=a"},
		"directory for a file": {func(g *ground) { g.remove(".mcp.json"); g.write(".mcp.json/x/y", "new") },
			".mcp.json/ .mcp.json/x/ .mcp.json/x/y=new .vscode/ .vscode/tasks.json=old a.txt=a"},
		"file for a directory": {func(g *ground) { g.replace(".vscode", "new") }, ".mcp.json=old .vscode=new a.txt=a"},
	} {
		t.Run(what, func(t *testing.T) {
			g := newGround(t)
			base(g)
			before, _ := os.Lstat(g.dir + "/.mcp.json")
			note := g.call(func() { c.do(g) })
			g.want("outside", outside)
			if !strings.Contains(note, "held") {
				t.Errorf("it is not said: %q", note)
			}
			after, _ := os.Lstat(g.dir + "/.mcp.json")
			if !before.ModTime().Equal(after.ModTime()) || before.Mode() != after.Mode() {
				t.Errorf("before %v %v, after %v %v", before.ModTime(), before.Mode(), after.ModTime(), after.Mode())
			}
			for range 2 {
				g.call(func() { g.want("inside", c.inside) })
				g.want("outside again", outside)
			}
			g.kill()
			g.begin(false)
			g.want("inside after a restart", c.inside)
			g.kill()
			g.k.Recover([]string{g.dir})
			g.want("outside after a kill", outside)
			if list, err := g.k.Keep(g.dir); err != nil || len(list) == 0 {
				t.Fatal(list, err)
			}
			g.want("kept", c.inside)
			g.call(func() {})
			g.want("after it was kept", c.inside)
			if what == "deep" || what == "appeared" {
				return
			}
			g.call(func() { g.remove(".mcp.json"); g.remove(".vscode"); base(g) })
			g.want("the former content is known", outside)
		})
	}
}

func TestKnown(t *testing.T) {
	g := newGround(t)
	g.write(".mcp.json", "one\n")
	g.call(func() {})
	g.write(".mcp.json", "two\n") // by a person
	g.call(func() {})
	g.call(func() { g.replace(".mcp.json", "one\n") })
	g.want("known", ".mcp.json=one\n")
	g.call(func() { g.replace(".mcp.json", "two\r\n") })
	g.want("line ends do not count", ".mcp.json=two\r\n")
	g.call(func() { g.write("sub/.mcp.json", "two\n") })
	g.want("known at another path", ".mcp.json=two\r\n sub/")
	g.call(func() { g.replace("sub/.mcp.json", "three\n") })
	g.write("sub/.mcp.json", "three\n") // the person's checkout brings out what a command wrote
	g.call(func() { g.want("a person's", ".mcp.json=two\r\n sub/ sub/.mcp.json=three\n") })
	g.call(func() { g.remove("sub/.mcp.json") })
	g.want("held", ".mcp.json=two\r\n sub/ sub/.mcp.json=three\n")
	g.call(func() { os.Chmod(g.dir+"/.mcp.json", 0o755) })
	if info, _ := os.Lstat(g.dir + "/.mcp.json"); info.Mode()&0o111 != 0 {
		t.Error("it can be executed")
	}
}

func TestPersonWins(t *testing.T) {
	for _, person := range []string{"mine", ""} {
		g := newGround(t)
		g.write(".mcp.json", "old")
		g.call(func() { g.replace(".mcp.json", "new") })
		want := ".mcp.json=mine"
		if g.write(".mcp.json", person); person == "" {
			g.remove(".mcp.json")
			want = ""
		}
		func() {
			defer func() { _ = recover() }()
			if note := g.call(func() {}); !strings.Contains(note, "another program") {
				t.Errorf("%q: it is not said: %s", person, note)
			}
		}()
		if want != "" {
			g.want("the person's", want)
		} else if _, err := os.Lstat(g.dir + "/.mcp.json"); err == nil {
			t.Error("it is back")
		}
		kept, _ := filepath.Glob(g.state + "/settle/*/dropped/*")
		if len(kept) != 1 {
			t.Errorf("dropped: %q", kept)
		}
	}
}

func TestHardLinks(t *testing.T) {
	g := newGround(t)
	other := filepath.Join(t.TempDir(), "dotfile")
	g.write(".mcp.json", "old and long")
	if err := os.Link(g.dir+"/.mcp.json", other); err != nil {
		t.Fatal(err)
	}
	g.call(func() { g.write(".mcp.json", "new") })
	g.want("outside", ".mcp.json=old and long")
	if text, _ := os.ReadFile(other); string(text) != "old and long" {
		t.Errorf("the other name has %q", text)
	}
	a, _ := os.Stat(other)
	b, _ := os.Stat(g.dir + "/.mcp.json")
	if !os.SameFile(a, b) {
		t.Error("they are no longer one file")
	}
	g.call(func() { g.want("inside", ".mcp.json=new") })
	g.write(".envrc", "old")
	g.call(func() { os.Link(g.dir+"/.envrc", g.dir+"/x") })
	g.call(func() { g.write("x", "evil") })
	g.want("through a link", ".envrc=old .mcp.json=old and long x=evil")
	c := g.begin(false)
	g.write("x", "more evil")
	c.End()
	g.write("x", "most evil") // by what still runs
	g.want("through a link", ".envrc=old .mcp.json=old and long x=most evil")
}

// TestPlanted asks of links that were found while a command ran, also when it has ended meanwhile.
func TestPlanted(t *testing.T) {
	g := newGround(t)
	at := func(rel string) string { return filepath.Join(g.dir, rel) }
	link := func(rel, to string) fs.FileInfo {
		t.Helper()
		_ = os.Remove(at(rel))
		if err := os.Symlink(to, at(rel)); err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(at(rel))
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	type answer struct{ planted, replaces bool }
	ask := func(when, rel string, found fs.FileInfo, want answer) {
		t.Helper()
		if planted, replaces := g.k.Planted(at(rel), found); (answer{planted, replaces}) != want {
			t.Errorf("%s: Planted(%s) = %t, %t", when, rel, planted, replaces)
		}
	}
	no, fresh, inPlace := answer{}, answer{true, false}, answer{true, true}
	byPerson := link(".envrc", "x")
	link(".mise.toml", "x")
	ask("before any command", ".envrc", byPerson, answer{false, true})
	var planted fs.FileInfo
	g.call(func() {
		planted = link(".mcp.json", "x")
		ask("where none was", ".mcp.json", planted, fresh)
		ask("a person's", ".envrc", byPerson, no)
		ask("of another name", "plain", link("plain", "x"), no)
		other := link(".mise.toml", "y")
		ask("in the place of a person's", ".mise.toml", other, inPlace)
		ask("made again as the person made it", ".mise.toml", link(".mise.toml", "x"), answer{false, true})
		ask("that is gone", ".mise.toml", other, inPlace)
		link(".mise.toml", "y")
	})
	ask("that was settled", ".mcp.json", planted, fresh)
	g.call(func() {
		ask("that was held and is in again", ".mcp.json", planted, fresh)
		ask("that was found before", ".envrc", byPerson, no)
	})
	byPerson = link(".mcp.json", "x")
	ask("of a person, in the place of a held one", ".mcp.json", byPerson, answer{false, true})
}

func TestOverlap(t *testing.T) {
	g := newGround(t)
	other := Open(g.state, marksIn, slog.New(slog.DiscardHandler))
	defer other.Close()
	g.write(".mcp.json", "old")
	first := g.begin(false)
	second, _, err := other.Begin([]string{g.dir}, false)
	if err != nil {
		t.Fatal(err)
	}
	g.write(".mcp.json", "new")
	first.End()
	g.want("another host's command runs", ".mcp.json=new")
	if list, err := g.k.Keep(g.dir); err != nil || len(list) != 0 {
		t.Error(list, err)
	}
	second.End()
	g.want("both have ended", ".mcp.json=old")
	g.call(func() { g.want("the first host", ".mcp.json=new") })
	third := g.begin(false)
	if list, err := other.Keep(g.dir); err != nil || len(list) != 1 {
		t.Error(list, err)
	}
	g.want("kept while it runs", ".mcp.json=new")
	third.End()
	g.want("kept", ".mcp.json=new")
	if list, _ := g.k.Held(g.dir); len(list) > 0 {
		t.Error(list)
	}
}

func TestRefuse(t *testing.T) {
	g := newGround(t)
	g.call(func() { g.write(".envrc", "new"); g.write(".idea/x", "new") })
	list, err := g.k.Held(g.dir)
	if err != nil || len(list) != 2 || list[0].State != "new" || list[0].Aside == "" {
		t.Fatal(list, err)
	}
	if done, err := g.k.Refuse(g.dir, g.dir+"/.idea"); err != nil || len(done) != 1 {
		t.Fatal(done, err)
	}
	g.call(func() { g.want("inside", ".envrc=new") })
	g.want("outside", "")
}

func TestPromptsStay(t *testing.T) {
	g := newGround(t)
	g.write("CLAUDE.md", "old")
	note := g.call(func() { g.write("CLAUDE.md", "new"); g.write(".claude/commands/a.md", "new") })
	if !strings.Contains(note, "CLAUDE.md") || !strings.Contains(note, ".claude/commands/a.md") {
		t.Errorf("not named: %q", note)
	}
	g.want("they stay", ".claude/ .claude/commands/ .claude/commands/a.md=new CLAUDE.md=new")
	if note := g.call(func() {}); note != "" {
		t.Errorf("named again: %q", note)
	}
}

func TestKeepsWithoutQuestions(t *testing.T) {
	g := newGround(t)
	c := g.begin(true)
	g.write(".envrc", "new")
	g.write(".mcp.json", "new")
	if notes := c.End(); len(notes) != 2 || !strings.Contains(strings.Join(notes, ""), ".envrc") {
		t.Errorf("%q", notes)
	}
	g.want("kept, but for what this host obeys", ".envrc=new")
	keeps, asks := g.begin(true), g.begin(false)
	g.write(".envrc", "newer")
	keeps.End()
	asks.End()
	g.want("one of them asks", ".envrc=new")
}

// BenchmarkNothingTouched measures a command that touches no protected name.
func BenchmarkNothingTouched(b *testing.B) {
	dir := b.TempDir()
	for i := range 20 {
		os.MkdirAll(fmt.Sprint(dir, "/", i, "/.vscode"), 0o755)
		os.WriteFile(fmt.Sprint(dir, "/", i, "/.vscode/tasks.json"), []byte("x"), 0o644)
	}
	time.Sleep(racyWindow)
	marks, _ := marksIn(dir)
	k := Open(b.TempDir(), func(string) ([]string, uint64) { return slices.Clone(marks), 1 },
		slog.New(slog.DiscardHandler))
	defer k.Close()
	for b.Loop() {
		c, _, _ := k.Begin([]string{dir}, false)
		c.End()
	}
}
