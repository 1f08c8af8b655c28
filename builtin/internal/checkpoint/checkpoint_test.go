//go:build linux

package checkpoint

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/toolhost/toolhost/builtin/internal/search/walk"
	"github.com/toolhost/toolhost/integration/samples"
	"github.com/toolhost/toolhost/integration/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start returns a tracker whose base has been read.
func start(t *testing.T, cfg Config) *Tracker {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	tr, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	<-tr.Ready()
	return tr
}

// newRoot returns an empty directory by its real path.
func newRoot(t testing.TB) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// sh runs a script in a directory.
func sh(t testing.TB, dir, script string) {
	t.Helper()
	if strings.Contains(script, "git ") {
		testenv.NeedsProgram(t, "git")
	}
	cmd := exec.Command("bash", "-ec", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// summary is one line for each change: what became of the path, and what it held before.
func summary(t *testing.T, r *Report) string {
	t.Helper()
	var out strings.Builder
	for _, c := range r.Changes {
		verb := "changed"
		switch {
		case c.Before.Kind == Absent:
			verb = "new"
		case c.After.Kind == Absent:
			verb = "deleted"
		}
		fmt.Fprintf(&out, "%s %s", verb, c.Path)
		switch {
		case c.Why != "":
			fmt.Fprintf(&out, " (%s)", c.Why)
		case c.Before.Kind == File:
			content, err := r.Content(c)
			if err != nil {
				t.Errorf("%s: %v", c.Path, err)
			}
			fmt.Fprintf(&out, " %q", content)
		case c.Before.Kind == Link:
			fmt.Fprintf(&out, " -> %s", c.Before.Link)
		}
		if c.Before.Kind != Absent && c.After.Kind != Absent && c.Before.Mode != c.After.Mode {
			fmt.Fprintf(&out, " %o to %o", c.Before.Mode, c.After.Mode)
		}
		if len(c.Links) > 0 {
			fmt.Fprintf(&out, " links %s", strings.Join(c.Links, " "))
		}
		out.WriteByte('\n')
	}
	if r.Ignored > 0 {
		fmt.Fprintf(&out, "%d ignored\n", r.Ignored)
	}
	return out.String()
}

// TestReport: what a command changed is told with what was there before.
func TestReport(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	const repo = "git init -q; git add .; git commit -qm 1; git repack -qad; "
	for i, tt := range []struct{ name, before, command, want string }{
		{"nothing", "echo a >f", "cat f; true", ""},
		{"touched only", "echo a >f", "touch f; echo a >f", ""},
		{"changed", "echo a >f", "echo b >f", "changed f \"a\\n\"\n"},
		{"changed twice", "echo a >f", "echo b >f; echo c >f", "changed f \"a\\n\"\n"},
		{"changed and back", "echo a >f", "echo b >f; echo a >f", ""},
		{"new and gone", "", "echo b >f; rm f", ""},
		{"new", "", "mkdir -p d/e; echo b >d/e/f", "new d\nnew d/e\nnew d/e/f\n"},
		{"deleted directory", "mkdir -p d/e; echo b >d/e/f", "rm -r d", "deleted d\ndeleted d/e\ndeleted d/e/f \"b\\n\"\n"},
		{"names below the slash", "mkdir d; for n in d/x d-x d.x 'd x' d!x d+x dx d; do echo a >\"$n\" || true; done 2>/dev/null", "rm -r d*; echo b >d",
			"changed d 755 to 644\ndeleted d/x \"a\\n\"\ndeleted d x \"a\\n\"\ndeleted d!x \"a\\n\"\ndeleted d+x \"a\\n\"\ndeleted d-x \"a\\n\"\ndeleted d.x \"a\\n\"\ndeleted dx \"a\\n\"\n"},
		{"renamed", "echo a >f", "mv f g", "deleted f \"a\\n\"\nnew g\n"},
		{"renamed directory", "mkdir d; echo a >d/f", "mv d e; echo b >e/f", "deleted d\ndeleted d/f \"a\\n\"\nnew e\nnew e/f\n"},
		{"directory made anew", "mkdir d", "rm -r d; mkdir -p d/e", "new d/e\n"},
		{"directories made anew", "mkdir -p d/e; echo a >d/e/f; echo b >d/g", "rm -r d; mkdir -p d/e; echo c >d/e/f", "changed d/e/f \"a\\n\"\ndeleted d/g \"b\\n\"\n"},
		{"swapped directories", "mkdir d e; echo a >d/f; echo b >e/f", "mv d x; mv e d; mv x e", "changed d/f \"a\\n\"\nchanged e/f \"b\\n\"\n"},
		{"mode", "echo a >f; chmod 644 f", "chmod 755 f", "changed f \"a\\n\" 644 to 755\n"},
		{"directory mode", "mkdir d; chmod 755 d", "chmod 700 d", "changed d 755 to 700\n"},
		{"link", "ln -s a l", "ln -sfn b l", "changed l -> a\n"},
		{"file to link", "echo a >f", "rm f; ln -s g f", "changed f \"a\\n\" 644 to 0\n"},
		{"file to directory", "echo a >f", "rm f; mkdir f; echo b >f/g", "changed f \"a\\n\" 644 to 755\nnew f/g\n"},
		{"directory to file", "mkdir f; echo b >f/g", "rm -r f; echo a >f", "changed f 755 to 644\ndeleted f/g \"b\\n\"\n"},
		{"hard link", "echo a >f; ln f g", "echo b >g", "changed f \"a\\n\" links g\nchanged g \"a\\n\" links f\n"},
		{"special", "", "mkfifo p", "new p\n"},
		{"newline in a name", "", "echo a >$'x\\ny'", "new x\ny\n"},
		{"name that is not UTF-8", "", "echo a >$'x\\xff'", "new x\xff\n"},
		{"of git", "echo a >f; " + repo, "echo b >f", "changed f \"a\\n\"\n"},
		{"of git, repacked and pruned", "echo a >f; " + repo, "echo b >f; git commit -qam 2; git reset -q --hard HEAD~; git reflog expire --expire=now --all; git gc -q --prune=now; rm -rf .git; rm f", "deleted f \"a\\n\"\n"},
		{"delta of git", "seq 5000 >f; " + repo + "seq 5001 >f; git commit -qam 2; git repack -qadf; git checkout -q HEAD~", "seq 3 >f; rm f; seq 1 >f; echo x >f", "changed f " + fmt.Sprintf("%q", seq(5000)) + "\n"},
		{"checkout", "echo a >f; " + repo + "echo b >f; git commit -qam 2", "git checkout -q HEAD~", "changed f \"b\\n\"\n"},
		{"stash", "echo a >f; " + repo + "echo b >f", "git stash -q", "changed f \"b\\n\"\n"},
		{"ignored directory", repo[:len("git init -q; ")] + "echo node_modules/ >.gitignore; mkdir -p node_modules/a; echo 1 >node_modules/a/x",
			"echo 2 >node_modules/a/x; mkdir node_modules/b; echo 3 >node_modules/b/y; touch node_modules/b/z", "3 ignored\n"},
		{"ignored file", "git init -q; echo .env >.gitignore; echo a >.env", "echo b >.env", "changed .env \"a\\n\"\n"},
		{"ignored large file", "git init -q; echo big >.gitignore; truncate -s 2M big", "echo b >big", "changed big (it is larger than 1 MiB)\n"},
		{"no longer ignored", "git init -q; echo d/ >.gitignore; mkdir d; echo a >d/f", ": >.gitignore; echo b >g", "changed .gitignore \"d/\\n\"\nnew g\n"},
		{"ignored from now on", "git init -q; mkdir d; echo a >d/f", "echo d/ >.gitignore", "new .gitignore\n"},
		{"ignored above", "git init -q .. ; echo d/ >../.gitignore; mkdir d; echo a >d/f", "echo b >d/f", "1 ignored\n"},
		{"git's own", "git init -q", "git config a.b c", ""},
		{"many", "", "for i in $(seq 300); do mkdir -p d$((i%7)); echo $i >d$((i%7))/$i; done; rm -r d*", ""},
	} {
		if i%samples.Step(1) != 0 {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			top := newRoot(t)
			root := filepath.Join(top, "w")
			if err := os.Mkdir(root, 0o755); err != nil {
				t.Fatal(err)
			}
			sh(t, root, "umask 022; "+tt.before)
			tr := start(t, Config{Root: root})
			m := tr.Begin(t.Context())
			sh(t, root, "umask 022; "+tt.command)
			removesPacks := strings.Contains(tt.command, "rm -rf .git") // only the process that has opened them can read them
			if !removesPacks {
				want := ignoredLine.ReplaceAllString(tt.want, "") // only the process that watched knows of all
				if settled := ignoredLine.ReplaceAllString(settle(t, tr, m), ""); settled != want {
					t.Errorf("%s\nsettled:\n%s\nwant:\n%s", tt.command, settled, want)
				}
			}
			r := m.End()
			defer r.Close()
			if got := summary(t, r); got != tt.want {
				t.Errorf("%s\ngot:\n%s\nwant:\n%s", tt.command, got, tt.want)
			}
			if len(r.Notes) > 0 && !strings.Contains(tt.want, "larger") && !removesPacks {
				t.Errorf("notes: %q", r.Notes)
			}
		})
	}
}

// ignoredLine matches the line of a summary that counts ignored files.
var ignoredLine = regexp.MustCompile(`(?m)^\d+ ignored\n`)

// settle returns the summary of what another process finds that settles the command when this one is killed now.
func settle(t *testing.T, tr *Tracker, m *Mark) string {
	t.Helper()
	begun, ok := m.Saved()
	if !ok {
		t.Fatal("the base is not on disk")
	}
	cfg := Config{Root: tr.cfg.Root, Dir: t.TempDir(), Hidden: tr.cfg.Hidden}
	if err := os.CopyFS(cfg.Dir, os.DirFS(tr.cfg.Dir)); err != nil {
		t.Fatal(err)
	}
	r, err := Settle(cfg, begun)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	return summary(t, r)
}

func seq(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintln(&out, i+1)
	}
	return out.String()
}

// TestLinksAndMoves: hard links, files that leave or enter ignored directories, and repositories that go are told.
func TestLinksAndMoves(t *testing.T) {
	testenv.NotShort(t, "runs git for each row")
	const before = "git init -q; echo ig/ >.gitignore; mkdir -p ig/deep ig/em/e em/e d; echo x >ig/x; echo y >ig/deep/y; echo a >a; ln a b; ln a d/c; echo z >z; git init -q n; echo 1 >n/f; mkdir s; echo gitdir: ../g >s/.git; "
	for _, tt := range []struct{ name, command, want, note string }{
		{"removed name", "rm b", "deleted b \"a\\n\" links a d/c\n", ""},
		{"changed and removed", "chmod 600 a; rm a", "deleted a \"a\\n\" links b d/c\nchanged b \"a\\n\" 644 to 600 links a d/c\nchanged d/c \"a\\n\" 644 to 600 links a b\n", ""},
		{"all names", "rm a b d/c", "deleted a \"a\\n\" links b d/c\ndeleted b \"a\\n\" links a d/c\ndeleted d/c \"a\\n\" links a b\n", ""},
		{"replaced by its copy", "cp a t; mv t a", "changed a \"a\\n\" links b d/c\n", ""},
		{"broken and linked again", "cp a t; mv t a; ln -f b a", "", ""},
		{"another link", "ln a e", "new e\n", ""},
		{"linked to a copy", "cp -p z y; ln -f y z; rm y", "", ""},
		{"out of ignored", "mv ig/x x", "deleted ig/x \"x\\n\"\nnew x\n", ""},
		{"directory out of ignored", "mv ig/deep o", "deleted ig/deep\ndeleted ig/deep/y \"y\\n\"\nnew o\nnew o/y\n", ""},
		{"into ignored", "mv z ig/z", "new ig/z\ndeleted z \"z\\n\"\n", ""},
		{"directory into ignored", "rm d/c; mv z d/z; ln -s z d/l; mv d ig/d", "deleted d\ndeleted d/c \"a\\n\" links a b\nnew ig/d\nnew ig/d/z\ndeleted z \"z\\n\"\n", ""},
		{"empty directories into ignored", "mkdir ig/k; mv em ig/k/", "deleted em\ndeleted em/e\nnew ig/k\nnew ig/k/em\nnew ig/k/em/e\n", ""},
		{"with a file that is not kept", "mv em ig/o; echo >ig/o/f", "deleted em\ndeleted em/e\nnew ig/o/e\n", ""},
		{"empty directory out of ignored", "mv ig/em o", "deleted ig/em\ndeleted ig/em/e\nnew o\nnew o/e\n", ""},
		{"empty directories within ignored", "mv ig/em ig/deep/; rmdir em/e; mkdir ig/o; echo >ig/o/f", "deleted em/e\n", ""},
		{"no longer ignored", "echo >.gitignore", "changed .gitignore \"ig/\\n\"\n", ""},
		{"no longer ignored, and some moved out", "mv ig/deep o; echo >.gitignore", "changed .gitignore \"ig/\\n\"\ndeleted ig/deep\ndeleted ig/deep/y \"y\\n\"\nnew o\nnew o/y\n", ""},
		{"a file for an ignored directory", "rm -r ig; echo >ig", "changed ig 755 to 644\n", ""},
		{"not moved, though the inode may be the same", "rm ig/x; echo new >new", "new new\n", ""},
		{"within ignored", "mv ig/x ig/deep/x", "", ""},
		{"repository", "rm -rf n", "deleted n\ndeleted n/f \"1\\n\"\n", `"n/.git" with`},
		{"repository moved", "mv n m", "new m\nnew m/f\ndeleted n\ndeleted n/f \"1\\n\"\n", `"n/.git" is at "m/.git" now`},
		{"its .git alone", "rm -rf n/.git", "", `"n/.git" with`},
		{"submodule", "rm -rf s", "deleted s\ndeleted s/.git \"gitdir: ../g\\n\"\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := newRoot(t)
			sh(t, root, "umask 022; "+before)
			tr := start(t, Config{Root: root})
			m := tr.Begin(t.Context())
			sh(t, root, "umask 022; "+tt.command)
			settled := settle(t, tr, m)
			r := m.End()
			defer r.Close()
			got := summary(t, r)
			for _, what := range []string{got, settled} {
				if what = ignoredLine.ReplaceAllString(what, ""); what != tt.want {
					t.Errorf("%s\ngot:\n%s\nwant:\n%s", tt.command, what, tt.want)
				}
			}
			if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, tt.note) || tt.note == "" && notes != "" {
				t.Errorf("notes: %q", notes)
			}
		})
	}
}

// TestModeOfMoved: a file that moves to an ignored directory is told with the mode that it has there.
func TestModeOfMoved(t *testing.T) {
	root := newRoot(t)
	sh(t, root, "git init -q; echo ig/ >.gitignore; mkdir ig; echo 1 >f; chmod 600 f")
	tr := start(t, Config{Root: root})
	for _, c := range reported(t, tr, root, "chmod 755 f; mv f ig/").Changes {
		if c.Path == "ig/f" && c.After.Mode == 0o755 {
			return
		}
	}
	t.Error("ig/f is not told, or with another mode")
}

// TestBetween: what changes between two commands is of neither.
func TestBetween(t *testing.T) {
	root := newRoot(t)
	sh(t, root, "echo a >f; echo a >g")
	tr := start(t, Config{Root: root})
	m := tr.Begin(t.Context())
	sh(t, root, "echo b >f")
	r := m.End()
	r.Close()
	sh(t, root, "echo c >f; echo c >g; mkdir d; echo c >d/h")
	m = tr.Begin(t.Context())
	sh(t, root, "echo d >f; echo d >d/h")
	r = m.End()
	defer r.Close()
	if got, want := summary(t, r), "changed d/h \"c\\n\"\nchanged f \"c\\n\"\n"; got != want {
		t.Errorf("got %s want %s", got, want)
	}
}

// TestOverlap: commands that run at the same time share what changed.
func TestOverlap(t *testing.T) {
	root := newRoot(t)
	sh(t, root, "echo a >f; echo a >g")
	tr := start(t, Config{Root: root})
	first := tr.Begin(t.Context())
	sh(t, root, "echo b >f")
	second := tr.Begin(t.Context())
	sh(t, root, "echo b >g")
	r2 := second.End()
	defer r2.Close()
	sh(t, root, "echo c >g")
	r1 := first.End()
	defer r1.Close()
	if got, want := summary(t, r2), "changed g \"a\\n\"\n"; got != want {
		t.Errorf("second: got %s want %s", got, want)
	}
	if got, want := summary(t, r1), "changed f \"a\\n\"\nchanged g \"a\\n\"\n"; got != want {
		t.Errorf("first: got %s want %s", got, want)
	}
}

// TestOverlapBack: what a command changes back is told if another one began in between, as that one is told of the change back.
func TestOverlapBack(t *testing.T) {
	root := newRoot(t)
	sh(t, root, "echo a >f; echo a >g")
	tr := start(t, Config{Root: root})
	first := tr.Begin(t.Context())
	sh(t, root, "echo b >f; echo b >g; echo b >new")
	second := tr.Begin(t.Context())
	sh(t, root, "echo a >f; rm new")
	r2 := second.End()
	defer r2.Close()
	third := tr.Begin(t.Context())
	sh(t, root, "echo c >f; echo a >g; echo a >f")
	r3 := third.End()
	defer r3.Close()
	r1 := first.End()
	defer r1.Close()
	for _, tt := range []struct {
		r    *Report
		want string
	}{
		{r1, "changed f \"a\\n\"\nchanged g \"a\\n\"\nnew new\n"},
		{r2, "changed f \"b\\n\"\ndeleted new \"b\\n\"\n"},
		{r3, "changed g \"b\\n\"\n"},
	} {
		if got := summary(t, tt.r); got != tt.want {
			t.Errorf("got %s want %s", got, tt.want)
		}
	}
}

// TestHidden: what is hidden is neither read nor named, and no path leads out of the root.
func TestHidden(t *testing.T) {
	root := newRoot(t)
	sh(t, root, "echo secret >.env; mkdir keys; echo secret >keys/k; ln -s /etc e; echo a >f")
	hidden := func(path string, _ walk.Info) bool {
		return filepath.Base(path) == ".env" || strings.HasPrefix(path, root+"/keys")
	}
	tr := start(t, Config{Root: root, Hidden: hidden})
	m := tr.Begin(t.Context())
	sh(t, root, "echo other >.env; echo other >keys/k; mv .env env2; mv env2 .env; rm f; ln -s keys f")
	r := m.End()
	defer r.Close()
	if got := summary(t, r); strings.Contains(got, "secret") || strings.Contains(got, "keys/") ||
		strings.Contains(got, ".env") {
		t.Error(got)
	}
	for sum := range tr.files.contents.copies {
		if sum == sumOf("secret\n") || sum == sumOf("other\n") {
			t.Error("a hidden file was copied")
		}
	}
}

// TestRandom: the report of random commands gives back what was there before, whatever they do.
func TestRandom(t *testing.T) {
	for seed := range samples.Rounds(40) { // of five commands each
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			root := newRoot(t)
			rnd := rand.New(rand.NewPCG(uint64(seed), 1))
			if seed%2 == 0 {
				sh(t, root, "git init -q; git commit -q --allow-empty -m 0")
			}
			sh(t, root, script(rnd, 30))
			if seed%2 == 0 {
				sh(t, root, "git add -A; git commit -qm 1 || true; git repack -qad")
			}
			tr := start(t, Config{Root: root})
			for range 5 {
				between := script(rnd, rnd.IntN(4)) // by others
				sh(t, root, between)
				m := tr.Begin(t.Context())
				before := snapshot(t, root)
				command := script(rnd, rnd.IntN(12))
				sh(t, root, command)
				r := m.End()
				got := rewound(t, snapshot(t, root), r)
				if diff := cmp.Diff(before, got); diff != "" {
					t.Fatalf("before and rewound differ (-before +rewound):\n%s\n%s\nafter\n%s\ncommand:\n%s", diff,
						summary(t, r), between, command)
				}
				r.Close()
			}
			if used := tr.files.contents.bytes; used < 0 {
				t.Errorf("the copies take %d bytes", used)
			}
		})
	}
}

// script is a script of n random commands.
func script(rnd *rand.Rand, n int) string {
	path := func() string {
		names := []string{"a", "b", "c d", "é"}
		p := names[rnd.IntN(len(names))]
		for rnd.IntN(2) == 0 {
			p += "/" + names[rnd.IntN(len(names))]
		}
		return "'" + p + "'"
	}
	commands := []func() string{
		func() string { return fmt.Sprintf("mkdir -p %s", path()) },
		func() string { return fmt.Sprintf("echo %d > %s", rnd.IntN(1000), path()) },
		func() string { return fmt.Sprintf("echo %d >> %s", rnd.IntN(1000), path()) },
		func() string { return fmt.Sprintf("mv -T %s %s", path(), path()) },
		func() string { return fmt.Sprintf("rm -rf %s", path()) },
		func() string { return fmt.Sprintf("ln -sfn %s %s", path(), path()) },
		func() string { return fmt.Sprintf("ln -f %s %s", path(), path()) },
		func() string { return fmt.Sprintf("chmod %o %s", 0o400|rnd.IntN(0o400), path()) },
		func() string { return fmt.Sprintf("cp -r %s %s", path(), path()) },
		func() string { return fmt.Sprintf("sed -i s/1/2/ %s", path()) },
		func() string { return "git stash -qu" },
		func() string { return "git add -A; git commit -qm x" },
		func() string { return "git gc -q --prune=now" },
		func() string { return fmt.Sprintf("tar cf /dev/stdout %s | tar xf - -C %s", path(), path()) },
	}
	lines := []string{"exec 2>/dev/null"}
	for range n {
		lines = append(lines, "{ "+commands[rnd.IntN(len(commands))]()+"; } || true")
	}
	return strings.Join(lines, "\n")
}

// snapshot is what stands below a root without .git: of each path its mode, and its content or target.
func snapshot(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == ".git" {
			return filepath.SkipDir
		}
		if path == root {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content := []byte{}
		if info.Mode().IsRegular() {
			content, err = os.ReadFile(path)
		} else if info.Mode()&fs.ModeSymlink != 0 {
			var target string
			target, err = os.Readlink(path)
			content = []byte(target)
		}
		all[path[len(root)+1:]] = describe(info.Mode(), string(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func describe(mode fs.FileMode, content string) string {
	if mode&fs.ModeSymlink != 0 {
		mode = fs.ModeSymlink
	}
	return fmt.Sprintf("%v %q", mode, content)
}

// rewound is a snapshot with the changes of a report taken back.
func rewound(t *testing.T, now map[string]string, r *Report) map[string]string {
	t.Helper()
	for _, c := range slices.Backward(r.Changes) {
		switch c.Before.Kind {
		case Absent:
			delete(now, c.Path)
		case Dir:
			now[c.Path] = describe(c.Before.Mode|fs.ModeDir, "")
		case Link:
			now[c.Path] = describe(fs.ModeSymlink, c.Before.Link)
		case File:
			content, err := r.Content(c)
			if err != nil || c.Why != "" {
				t.Fatalf("%s: %v %s", c.Path, err, c.Why)
			}
			now[c.Path] = describe(c.Before.Mode, string(content))
		}
	}
	return now
}

// TestBounds: what is too large is said, and nothing is kept of it.
func TestBounds(t *testing.T) {
	root := newRoot(t)
	sh(t, root, "seq 1000 >a; seq 2000 >b; echo c >c")
	tr := start(t, Config{Root: root, MaxBytes: 5000})
	m := tr.Begin(t.Context())
	sh(t, root, "echo 1 >a; echo 1 >b; echo 1 >c")
	r := m.End()
	defer r.Close()
	if got := summary(t, r); !strings.Contains(got, "changed b (the copies of workspaces take") ||
		!strings.Contains(got, `changed c "c\n"`) {
		t.Error(got)
	}
	if len(r.Notes) != 1 || r.Notes[0] != "Of 1 of the changed files the content before is not kept." {
		t.Errorf("notes: %q", r.Notes)
	}
}

// TestLarge: of a root with too many files those that are read are covered. That others are not is told before the
// first command, by number.
func TestLarge(t *testing.T) {
	root := newRoot(t)
	sh(t, root, "mkdir d e; for i in 1 2 3 4; do echo $i >d/$i; echo $i >e/$i; done")
	tr := start(t, Config{Root: root, MaxFiles: 4})
	m := tr.Begin(t.Context())
	if !strings.Contains(m.Unread(), "more than 4 files, of which 4 are read") {
		t.Errorf("told: %q", m.Unread())
	}
	sh(t, root, "echo new >d/1; echo new >e/1; echo new >new")
	r := m.End()
	defer r.Close()
	if got, e, d := summary(t, r), "changed e/1 \"1\\n\"\nnew new\n", "changed d/1 \"1\\n\"\nnew new\n"; got != e &&
		got != d {
		t.Errorf("changes:\n%s", got)
	}
	if again := tr.Begin(t.Context()); again.Unread() != "" || len(again.End().Notes) > 0 {
		t.Errorf("told again: %q", again.Unread())
	}
}

// TestPartial: a command that begins before all has been read is covered where it had been.
func TestPartial(t *testing.T) {
	root := newRoot(t)
	sh(t, root, "mkdir d; echo 1 >d/f; echo 1 >f")
	tr := start(t, Config{Root: root})
	tr.mu.Lock() // as if d had not been read yet
	tr.ready, tr.reading = make(chan struct{}), true
	d := tr.top.entries["d"].sub
	d.entries, d.first, tr.pending = nil, scanBase, []*dir{d}
	tr.mu.Unlock()
	tr.cfg.Wait = time.Millisecond
	m := tr.Begin(t.Context())
	if !strings.HasPrefix(m.Unread(), "2 files of ") {
		t.Errorf("told: %q", m.Unread())
	}
	sh(t, root, "echo 2 >d/f; echo 2 >f")
	r := m.End()
	defer r.Close()
	if got := summary(t, r); got != "changed f \"1\\n\"\n" || len(r.Notes) != 1 {
		t.Errorf("%s\n%q", got, r.Notes)
	}
}

// TestUnwatched: directories that cannot be watched are examined for each command.
func TestUnwatched(t *testing.T) {
	root := newRoot(t)
	sh(t, root, "echo a >f; mkdir -p d/e; echo a >d/g")
	tr := start(t, Config{Root: root})
	tr.mu.Lock()
	d := tr.top.entries["d"].sub
	tr.feed.Unwatch(&d.watched)
	tr.unwatched[d] = true
	tr.mu.Unlock()
	m := tr.Begin(t.Context())
	sh(t, root, "echo b >d/g; echo b >d/h; echo b >f; echo b >d/e/new")
	r := m.End()
	defer r.Close()
	if got, want := summary(t, r), "new d/e/new\nchanged d/g \"a\\n\"\nnew d/h\nchanged f \"a\\n\"\n"; got != want {
		t.Errorf("got %s want %s", got, want)
	}
}

func sumOf(content string) Sum { return Sum(sha256.Sum256([]byte(content))) }

// unwatch makes a tracker that of a system which announces nothing.
func unwatch(t *testing.T, tr *Tracker) {
	t.Helper()
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if err := tr.feed.Close(); err != nil {
		t.Error(err)
	}
	tr.feed = nil
}

// TestWithoutWatches: where the system announces nothing, everything is compared.
func TestWithoutWatches(t *testing.T) {
	root := newRoot(t)
	sh(t, root, "echo a >f; mkdir d; echo a >d/g")
	tr := start(t, Config{Root: root})
	unwatch(t, tr)
	m := tr.Begin(t.Context())
	sh(t, root, "echo b >d/g; mkdir e; echo b >e/h; rm f")
	r := m.End()
	defer r.Close()
	if got, want := summary(t, r), "changed d/g \"a\\n\"\nnew e\nnew e/h\ndeleted f \"a\\n\"\n"; got != want {
		t.Errorf("got %s want %s", got, want)
	}
}

// TestLongLog: what a long command changes again and again takes no more room than what it changes.
func TestLongLog(t *testing.T) {
	root := newRoot(t)
	sh(t, root, "echo a >f; echo a >g")
	tr := start(t, Config{Root: root})
	tr.compact = 4
	task := tr.Begin(t.Context())
	for i := range 20 {
		m := tr.Begin(t.Context())
		sh(t, root, fmt.Sprintf("echo %d >f; echo %d >g", i, i))
		r := m.End()
		if len(r.Changes) != 2 {
			t.Fatal(summary(t, r))
		}
		r.Close()
	}
	tr.compact = 0
	sh(t, root, "echo b >g")
	r := task.End()
	if got, want := summary(t, r), "changed f \"a\\n\"\nchanged g \"a\\n\"\n"; got != want {
		t.Errorf("got %s want %s", got, want)
	}
	if len(tr.log) > 0 {
		t.Errorf("%d changes are remembered", len(tr.log))
	}
	r.Close()
	if got := tr.files.contents.used.Load(); got != int64(len("19\nb\n")) {
		t.Errorf("the copies take %d bytes", got)
	}
}

// TestTooLong: a comparison that takes too long ends, and what it did not reach is said and not taken for a change of the next command.
func TestTooLong(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	root := newRoot(t)
	sh(t, root, "for i in $(seq 200); do echo a >$i; done")
	tr := start(t, Config{Root: root})
	m := tr.Begin(t.Context())
	sh(t, root, "for i in $(seq 200); do echo b >$i; done")
	tr.mu.Lock()
	if tr.compare(0) || len(tr.log) == 200 {
		t.Errorf("the comparison did not end: %d changes", len(tr.log))
	}
	tr.mu.Unlock()
	r := m.End()
	if len(r.Changes) != 200 || len(r.Notes) > 0 {
		t.Errorf("%d changes, notes %q", len(r.Changes), r.Notes)
	}
	r.Close()
	tr.mu.Lock()
	m = tr.Begin(t.Context()) // waits for beginTime
	tr.mu.Unlock()
	r = m.End()
	defer r.Close()
	if len(r.Changes) > 0 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "took too long") {
		t.Errorf("%s notes %q", summary(t, r), r.Notes)
	}
}

// TestUnusual: what is odd is neither lost nor followed, and what cannot be read is said.
func TestUnusual(t *testing.T) {
	const clone = "git init -q o; cd o; seq 9 >f; git add .; git commit -qm 1; cd ..; "
	for i, tt := range []struct{ name, before, command, want string }{
		{"worktree", clone + "git -C o worktree add -q ../wt 2>/dev/null; git -C o repack -qad", "echo b >wt/f", "changed wt/f " + fmt.Sprintf("%q", seq(9)) + "\n"},
		{"submodule", clone + "git init -q s; cd s; git -c protocol.file.allow=always submodule --quiet add ../o m; git commit -qm 1", "echo b >s/m/f", "changed s/m/f " + fmt.Sprintf("%q", seq(9)) + "\n"},
		{"sparse", clone + "cd o; mkdir d; echo 1 >d/g; git add .; git commit -qm 2; git repack -qad; git sparse-checkout set --no-cone /f", "git -C o sparse-checkout disable", "new o/d\nnew o/d/g\n"},
		{"autocrlf", clone + "cd o; git config core.autocrlf true; rm f; git checkout -q f", "printf x >o/f", "changed o/f " + fmt.Sprintf("%q", strings.ReplaceAll(seq(9), "\n", "\r\n")) + "\n"},
		{"LFS pointer", clone + "cd o; printf 'version https://git-lfs.github.com/spec/v1\\nsize 5\\n' >p; git add .; git commit -qm 2; printf 12345 >p", "printf x >o/p", "changed o/p \"12345\"\n"},
		{"partial clone", clone + "git -C o config uploadpack.allowFilter true; git clone -q --no-local --filter=blob:none file://$PWD/o c 2>/dev/null", "echo b >c/f", "changed c/f " + fmt.Sprintf("%q", seq(9)) + "\n"},
		{"clock back", "echo a >f; echo a >g", "echo b >f; touch -d 1990-01-01 f; touch -r f g; echo b >g; touch -d 1990-01-01 g", "changed f \"a\\n\"\nchanged g \"a\\n\"\n"},
		{"sockets and pipes", "mkfifo p; echo a >f", "rm p; mkfifo p; mkfifo q; rm f; mkfifo f", "changed f \"a\\n\" 644 to 644\nnew q\n"},
		{"damaged git", clone + "cd o; git repack -qad; chmod u+w .git/objects/pack/*; for f in .git/objects/pack/*; do : >$f; done", "echo b >o/f", "changed o/f " + fmt.Sprintf("%q", seq(9)) + "\n"},
	} {
		if i%samples.Step(1) != 0 {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			root := newRoot(t)
			sh(t, root, "umask 022; "+tt.before)
			tr := start(t, Config{Root: root})
			m := tr.Begin(t.Context())
			sh(t, root, "umask 022; "+tt.command)
			r := m.End()
			defer r.Close()
			if got := summary(t, r); got != strings.ReplaceAll(tt.want, " 644 to 644", "") {
				t.Errorf("got:\n%s\nwant:\n%s", got, tt.want)
			}
		})
	}
}

// TestOverflow: where events were lost, everything is compared.
func TestOverflow(t *testing.T) {
	testenv.NeedsNotifications(t)
	root := newRoot(t)
	sh(t, root, "echo a >f; mkdir d; echo a >d/g")
	tr := start(t, Config{Root: root})
	m := tr.Begin(t.Context())
	sh(t, root, "echo b >d/g; rm f")
	tr.feed.Lose()
	r := m.End()
	defer r.Close()
	if got, want := summary(t, r), "changed d/g \"a\\n\"\ndeleted f \"a\\n\"\n"; got != want {
		t.Errorf("got %s want %s", got, want)
	}
}

// TestUsed: the copies of several roots share a bound, and give their part back.
func TestUsed(t *testing.T) {
	var used atomic.Int64
	a, b := newRoot(t), newRoot(t)
	sh(t, a, "seq 1000 >f")
	sh(t, b, "seq 1001 >f")
	first := start(t, Config{Root: a, Used: &used, MaxBytes: 5000})
	second := start(t, Config{Root: b, Used: &used, MaxBytes: 5000})
	if used.Load() != int64(len(seq(1000))) || second.files.contents.bytes != 0 {
		t.Errorf("%d bytes are used", used.Load())
	}
	if err := first.Close(); err != nil || used.Load() != 0 {
		t.Errorf("%v, %d bytes are used", err, used.Load())
	}
}

// TestNoPermission: what cannot be read is said, and what can is kept.
func TestNoPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("nothing is forbidden to root")
	}
	root := newRoot(t)
	sh(t, root, "echo a >f; echo a >g; chmod 0 g; mkdir d; echo a >d/h; chmod 0 d")
	defer sh(t, root, "chmod 700 d")
	tr := start(t, Config{Root: root})
	m := tr.Begin(t.Context())
	sh(t, root, "echo b >f; rm g")
	r := m.End()
	defer r.Close()
	if got, want := summary(t, r), "changed f \"a\\n\"\ndeleted g (permission denied)\n"; got != want {
		t.Errorf("got %s want %s", got, want)
	}
	if notes := fmt.Sprint(r.Notes); !strings.Contains(notes, `among them "d/" (permission denied)`) {
		t.Errorf("notes: %q", r.Notes)
	}
}

// TestManyFiles: 100,000 files are covered, and a change of some costs no look at the others.
func TestManyFiles(t *testing.T) {
	if !samples.Whole() {
		t.Skip("takes many files")
	}
	root := newRoot(t)
	sh(t, root, "for d in $(seq 100); do mkdir $d; cd $d; seq -f %04g 1000 | xargs touch; cd ..; done")
	tr := start(t, Config{Root: root})
	m := tr.Begin(t.Context())
	sh(t, root, "echo b >7/0007; rm 8/0008; mv 9 x")
	r := m.End()
	defer r.Close()
	if len(r.Changes) != 2+2*1001 || len(r.Notes) > 0 {
		t.Errorf("%d changes, notes %q", len(r.Changes), r.Notes)
	}
}
