//go:build slow && linux

package attack

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// A wild ground is a world that a generator made: directories, files, links and rules, from a seed alone.
type wild struct {
	t    *testing.T
	rand *rand.Rand
	kind wildKind
	top  string // all of it lies below
	home string

	roots  []string // the first is where the host is started
	dirs   []string // in the roots
	files  []*wildFile
	links  []wildLink
	rules  []wildRule
	made   int                  // files so far: each has a number, and so a canary
	byName map[string]*wildFile // by every name that a file has without a symbolic link

	shadowed map[string]bool // what is in the copy that git is asked about
	secrets  wildSecrets
	problems []string
	tasks    []string // that commands run as
	later    func()   // what is to be done when the last rule is in force
	quiet    int      // how many steps there are before the first command of an attack
}

// A wildFile holds a text that no other file holds.
type wildFile struct {
	path   string
	more   []string // hard links
	canary string
	info   os.FileInfo // as it was made
	text   string

	unread, unwritten bool // some rule denies it for certain
	free              bool // no rule can be meant to
}

// A wildLink is a symbolic link.
type wildLink struct{ path, to string }

// wildCanary begins every canary: outputs are looked through for it first.
const wildCanary = "CANARYWILD"

// Parts of names. Each has a meaning to somebody: to a shell, to patterns, to git, to options, to us.
var (
	wildDirs = []string{"a", "src", "b c", "-d", "x[1]", "ü", "u\u0308", ".hid", "n*m", "q?", `back\sl`, "$HOMES",
		"{p,q}", "!neg", "#h", "new\nline", "SRC", "~", ".git", ".claude", "node_modules", "'q\"", "tail ", "e(f)"}
	wildHeads = []string{"", "", "", "-", ".", "[", "*", "é", "A", " ", "!", "#", "$(x)", "a;b", "\\",
		"e\u0301", "~", "%s"}
	wildTails = []string{".key", ".txt", ".KEY", ".env", ".go", "", ".tar.gz", " ", "]", ".md", ".json"}
	wildTops  = []string{"ws", "w s", "w[s]", "wé", "-ws", "w*", "ws{a,b}", "#ws"}
)

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// oneIn is true once in n times.
func (w *wild) oneIn(n int) bool { return w.rand.IntN(n) == 0 }

// newWild makes the ground of a seed.
func newWild(t *testing.T, seed uint64, kind wildKind) *wild {
	t.Helper()
	top, err := os.MkdirTemp(wildHome(t), "w")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeWild(t, top) })
	w := &wild{t: t, rand: rand.New(rand.NewPCG(seed, 7)), kind: kind, top: top, home: filepath.Join(top, "home"),
		byName: map[string]*wildFile{}}
	w.makeDirs()
	for range 14 + w.rand.IntN(12) {
		w.makeFile(pick(w.rand, w.dirs), wildHeads, wildTails)
	}
	w.makeLinks()
	w.put(filepath.Join(w.top, "outside", "o.txt"), "outside\n"+w.canary()+"\n")
	w.put(filepath.Join(w.home, ".bashrc"), "# rc\n")
	w.makeRules()
	w.classify()
	w.makeGit()
	w.note()
	return w
}

// wildHome is where grounds are made: below no directory of the test's, whose name would be in every path.
func wildHome(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func removeWild(t *testing.T, top string) {
	_ = filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o755) // a command may have shut it
		}
		return nil
	})
	if err := os.RemoveAll(top); err != nil {
		t.Error(err)
	}
}

func (w *wild) put(path, text string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *wild) makeDirs() {
	w.roots = []string{filepath.Join(w.top, pick(w.rand, wildTops))}
	if w.oneIn(3) {
		w.roots = append(w.roots, filepath.Join(w.top, "second"))
	}
	if w.oneIn(4) {
		w.roots = append(w.roots, filepath.Join(w.roots[0], "nested"))
	}
	w.dirs = append(w.dirs, w.roots...)
	for range 5 + w.rand.IntN(6) {
		dir := filepath.Join(pick(w.rand, w.dirs), pick(w.rand, wildDirs))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			w.t.Fatal(err)
		}
		w.dirs = append(w.dirs, dir)
	}
}

// canary returns the next text that stands in one file alone.
func (w *wild) canary() string {
	w.made++
	return fmt.Sprintf("%s%03dz%06x", wildCanary, w.made, w.rand.IntN(1<<24))
}

// makeFile makes a file whose name holds its number, so that it can be told from all others.
func (w *wild) makeFile(dir string, heads, tails []string) *wildFile {
	f := &wildFile{canary: w.canary()}
	f.path = filepath.Join(dir, fmt.Sprintf("%szq%03d%s", pick(w.rand, heads), w.made, pick(w.rand, tails)))
	if w.oneIn(8) {
		f.path = filepath.Join(dir, pick(w.rand, []string{".env", "id_rsa", "package.json", "Makefile"}))
	}
	if old := w.byName[f.path]; old != nil {
		return old
	}
	f.text = "first line\n" + f.canary + "\nlast line\n"
	w.put(f.path, f.text)
	w.files = append(w.files, f)
	w.byName[f.path] = f
	return f
}

func (w *wild) makeLinks() {
	for i := range 3 + w.rand.IntN(5) {
		at := filepath.Join(pick(w.rand, w.dirs), fmt.Sprintf("ln%d%s", i, pick(w.rand, []string{"", ".txt", ".key"})))
		to := pick(w.rand, w.files).path
		switch w.rand.IntN(5) {
		case 0:
			to = pick(w.rand, w.dirs[len(w.roots):]) // one to a root that is denied would deny all of that
		case 1:
			to = filepath.Join(w.top, "outside")
		}
		if w.oneIn(2) {
			if rel, err := filepath.Rel(filepath.Dir(at), to); err == nil {
				to = rel
			}
		}
		if err := os.Symlink(to, at); err == nil {
			w.links = append(w.links, wildLink{at, to})
		}
	}
	for i := range w.rand.IntN(4) {
		f := pick(w.rand, w.files)
		at := filepath.Join(pick(w.rand, w.dirs), fmt.Sprintf("hl%d%s", i, pick(w.rand, wildTails)))
		if err := os.Link(f.path, at); err == nil {
			f.more = append(f.more, at)
			w.byName[at] = f
		}
	}
}

// makeGit makes the first root a repository, which knows some of the files that no rule denies.
func (w *wild) makeGit() {
	if w.oneIn(2) {
		return
	}
	git := func(args ...string) {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = w.roots[0], append(host.CleanEnv(w.home), "GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@e",
			"GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@e")
		_ = cmd.Run() // a name that git does not take is not in the repository
	}
	git("init", "-q")
	for _, f := range w.files {
		if f.free && strings.HasPrefix(f.path, w.roots[0]+"/") && w.oneIn(2) {
			git("add", "-f", "--", f.path)
		}
	}
	git("commit", "-q", "-m", "start")
}

// note remembers how the files are, to be held against how they end.
func (w *wild) note() {
	for _, f := range w.files {
		var err error
		if f.info, err = os.Lstat(f.path); err != nil {
			w.t.Fatal(err)
		}
	}
}

// some returns a file of those that f wants, nil if there is none.
func (w *wild) some(wanted func(*wildFile) bool) *wildFile {
	var all []*wildFile
	for _, f := range w.files {
		if wanted(f) {
			all = append(all, f)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return pick(w.rand, all)
}
