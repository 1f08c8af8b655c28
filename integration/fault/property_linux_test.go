package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
	"github.com/toolhost/toolhost/integration/testenv"
)

// world is the workspace that random scripts change.
const world = `
umask 022
rm -rf -- * .git* .env
git init -q -b main . && git config user.email a@b && git config user.name a && git config gc.auto 0
printf 'ignored/\n*.log\n.env\n' > .gitignore
for i in 1 2 3 4; do mkdir -p d$i/e; echo "$i" > d$i/f; echo "e$i" > d$i/e/g; done
echo a > a; echo b > b; echo solo > solo; mkdir -p whole/e; echo 1 > whole/e/f; ln -s e whole/l; ln a a2; ln d1/f d2/f1; ln d1/f top; ln -s a l; ln -s d1 dl; ln -s nowhere broken
mkdir -p ignored/deep; echo x > ignored/x; echo y > ignored/deep/y; echo log > some.log; echo secret > .env
chmod 755 a; chmod 600 b; chmod 000 d3/f; chmod 700 d4; chmod 444 d4/f
git add -A . && git commit -qm 1 && echo more >> b && git commit -qam 2 && git branch side HEAD~ && echo dirty >> d2/f
`

// steps are what a script is made of; %d is a number from 1 to 4. No script moves into an ignored directory what it has made, or what has other
// names: what is changed there is left, and named.
var steps = []string{
	"mv d%d m%d", "mv d%d/f g%d", "mv a d%d/", "mv d%d/e/g d%d/h", "mv whole ignored/", "mv solo ignored/solo", "mv ignored/x x", "mv ignored/deep out%d", "mv ignored/deep/y d%d/y",
	"ln a n%d", "ln -f b a2", "ln -f a b", "ln d1/f link%d", "rm a", "rm a2 top", "rm -f d%d/f1", "cp --remove-destination a a2", "ln -sfn d%d l", "ln -s a d%d/s", "rm l; mkdir l; echo 1 > l/f",
	"chmod 7%d0 a", "chmod 000 b", "chmod 755 d3/f", "chmod 70%d d1", "chmod -R u=rwX,go= d%d",
	"sed -i s/./z/ a", "sed -i s/./z/ d%d/f", "echo %d >> a", "echo %d > top", "echo %d > d%d/f", "echo new > new%d", "mkdir -p p%d/q/r; echo 1 > p%d/q/f",
	"git checkout -q side", "git checkout -q -- .", "git stash -q; git stash pop -q", "git stash -q", "git checkout -q side; git rebase -q main", "git reset -q --hard", "git rm -q d%d/e/g", "git mv d%d/f moved%d", "git gc -q --prune=now",
	"rm -rf d%d", "rm -rf d1 d2 d3", "rm -r d%d/e", "tar cf t%d.tar d1 d2 a a2; rm -rf d1 d2 a a2; tar xf t%d.tar; rm t%d.tar", "tar cf t.tar d%d; tar xf t.tar --one-top-level=un%d; rm t.tar",
	"echo %d > some.log", "rm some.log", "mv some.log kept%d", "echo %d >> .env", "mv .env env%d", "rm broken; touch broken", "mkfifo pipe%d", "cp -a d%d c%d", "echo '*.txt' >> .gitignore; echo 1 > n%d.txt",
}

// found are scripts of which the undo once failed.
var found = [][]string{
	{"rm l; mkdir l; echo 1 > l/f", "git stash -q; git stash pop -q"},
	{"ln -f b a2", "git reset -q --hard; rm a; git checkout -q -- a; ln a n4"},
}

// script returns some random steps. What was moved into an ignored directory before is not moved there again.
func script(r *rand.Rand, before []string) string {
	var all []string
	for range 1 + r.IntN(6) {
		step := steps[r.IntN(len(steps))]
		for n := 1 + r.IntN(4); strings.Contains(step, "%d"); {
			step = strings.Replace(step, "%d", fmt.Sprint(n), 1)
		}
		if strings.Contains(step, " ignored/") && strings.Contains(strings.Join(append(before, all...), "\n"), step) {
			continue // git may have made it anew
		}
		all = append(all, step)
	}
	// What leaves an ignored directory does so last: its content is not kept if the same command then changes it.
	leaves := func(step string) bool { return strings.HasPrefix(step, "mv ignored/") }
	all = append(slices.DeleteFunc(slices.Clone(all), leaves),
		slices.DeleteFunc(all, func(step string) bool { return !leaves(step) })...)
	return strings.Join(all, "\n")
}

// shape is what stands in the root without .git: of each path its kind, mode, content or target, and the first name of the file.
func (g *ground) shape() map[string]string {
	g.T.Helper()
	all := map[string]string{}
	first := map[uint64]string{}
	host.Must(g.T, filepath.WalkDir(g.WS, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a program that runs has just removed it
		}
		if err != nil || path == g.WS {
			return err
		}
		if d.Name() == ".git" && filepath.Dir(path) == g.WS {
			return fs.SkipDir
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		name := path[len(g.WS)+1:]
		what := ""
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			what, err = os.Readlink(path)
		case info.Mode().IsRegular():
			var content []byte
			content, err = os.ReadFile(path)
			inode := info.Sys().(*syscall.Stat_t).Ino
			if first[inode] == "" {
				first[inode] = name
			}
			what = fmt.Sprintf("%q = %s", content, first[inode])
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		all[name] = fmt.Sprintf("%v %s", info.Mode(), what)
		return err
	}))
	return all
}

// newGit puts the repository there again that the world began with, as the undo leaves .git as it is. Its index learns
// of the files that were restored: else git makes them anew when it resets.
const newGit = `rm -rf .git && cp -a ../git .git; git update-index -q --refresh || true`

// eachHost is how many rounds the property test plays with one host.
const eachHost = 16

// TestFaultUndoAll has random scripts change a workspace while another conversation writes; the undo of all leads back to the same bytes,
// modes and hard links. A host plays several rounds, so what it has seen of one is not taken for the next.
func TestFaultUndoAll(t *testing.T) {
	testenv.NeedsProgram(t, "git")
	if os.Getuid() != 0 {
		t.Log("files of mode 000 are not covered")
	}
	seed := uint64(1) // the same scripts each time, but for a night's run, which looks for new ones
	if samples.Whole() {
		seed = rand.Uint64()
	}
	var p *played
	for round := range samples.Rounds(24) {
		if p == nil {
			p = newPlayed(t)
		}
		r := rand.New(rand.NewPCG(seed, uint64(round)))
		var scripts []string
		for range 1 + r.IntN(3) {
			scripts = append(scripts, script(r, scripts))
		}
		if round < len(found) {
			scripts = found[round]
		}
		if wrong := p.play(r, scripts); wrong != "" {
			t.Errorf("seed %d round %d:\n%s\n%s", seed, round, strings.Join(scripts, "\n---\n"), wrong)
			p.s.Kill()
			p = nil
		} else if round%eachHost == eachHost-1 {
			p.s.End()
			p = nil
		}
	}
}

// A played world is one that scripts changed and the undo led back, with its host.
type played struct {
	*ground
	s      *session
	before map[string]string
	known  []string
}

func newPlayed(t *testing.T) *played {
	g := newGround(t)
	if out, err := exec.Command("bash", "-ec", "cd "+g.WS+"\n"+world+"\ncp -a .git ../git").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p := &played{ground: g, before: g.shape(), s: g.start(host.StdioModern)}
	p.s.covered()
	return p
}

// play plays one round and returns what the undo of it does wrong.
func (p *played) play(r *rand.Rand, scripts []string) string {
	p.T.Helper()
	for _, text := range scripts {
		p.s.Try("Bash", host.Args{"command": text})
		p.s.Try("Write", host.Args{"file_path": p.Path(fmt.Sprintf("w%d/written", r.IntN(3))), "content": text})
	}
	made := slices.DeleteFunc(p.ids("--limit", "20"), func(id string) bool { return slices.Contains(p.known, id) })
	if len(made) == 0 {
		return ""
	}
	out, err := p.Run("rewind", made[0], "--yes")
	if diff := cmp.Diff(p.before, p.shape()); diff != "" || err != nil {
		return fmt.Sprintf("%v %s\n(-before +rewound)\n%s", err, out, diff)
	}
	p.known = p.ids("--limit", "20")
	if out, err := exec.Command("bash", "-ec", "cd "+p.WS+"; "+newGit).CombinedOutput(); err != nil {
		p.T.Fatalf("%v: %s", err, out)
	}
	return ""
}
