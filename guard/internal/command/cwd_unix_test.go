//go:build slow && unix

package command

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A walk makes random texts that change directory; each "mark" gets a number, and
// says where it runs.
type walk struct {
	*rand.Rand
	marks int
}

func (w *walk) one(of ...string) string { return of[w.IntN(len(of))] }

// list is a list of commands, nested at most so deep.
func (w *walk) list(depth int) string {
	text := w.command(depth)
	for range w.IntN(4) {
		text += w.one(" && ", " && ", " && ", " || ", " || ", "; ", "\n", " | ") + w.command(depth)
	}
	return text
}

func (w *walk) command(depth int) string {
	if depth == 0 || w.IntN(2) == 0 {
		switch w.IntN(5) {
		case 0, 1:
			w.marks++
			return fmt.Sprint("mark ", w.marks)
		case 2:
			if w.IntN(8) == 0 {
				return w.one("pushd a", "popd", "cd -", "command cd a", "eval 'cd a'") // not followed
			}
			return w.one("true", "false", "exit", "exit 1", "exit 1 2", "exit x")
		}
		return "cd " + w.one("a", "b", "..", "a/b", "none", ".", "-- a", "", "../y") + w.one("", "", "", " > out",
			" > none/out")
	}
	in := func() string { return w.list(depth - 1) }
	switch w.IntN(14) {
	case 0, 1:
		return "( " + in() + " )"
	case 2, 3:
		return "{ " + in() + "; }" + w.one("", "", " > none/out")
	case 4, 5:
		return "if " + in() + "; then " + in() + w.one("", "; else "+in(), "; elif "+in()+"; then "+in()) + "; fi"
	case 6:
		return "! { " + in() + "; }"
	case 7:
		return ": $(" + in() + ")"
	case 8:
		return "{ " + in() + "; } & wait"
	case 9:
		return "for i in 1 2; do " + in() + "; done"
	case 10:
		return "f() { " + in() + "; }; f"
	case 11:
		return "case a in a) " + in() + ";; esac"
	case 12:
		return "time { " + in() + "; }"
	}
	if text := in(); !strings.ContainsAny(text, "'") {
		return w.one("bash -c '", "eval '", "trap 'true' EXIT; bash -c '") + text + "'"
	}
	return "true"
}

// may returns the directories, relative to the start, that commands may run in; any
// if they are not known.
func may(c Simple) (dirs []string, anywhere bool) {
	for _, place := range c.Places {
		at := "."
		for _, step := range place {
			if step.Home {
				at = "home"
				continue
			}
			at = path.Join(at, step.Text)
		}
		dirs = append(dirs, at)
	}
	return dirs, c.Places == nil
}

// TestPlacesAgainstBash runs random texts under bash and asks that each command ran
// in one of its places.
func TestPlacesAgainstBash(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed: its view of the directories cannot be compared")
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	bin, start := filepath.Join(top, "bin"), filepath.Join(top, "x", "y")
	for _, dir := range []string{bin, filepath.Join(start, "a", "b"), filepath.Join(start, "b", "a"),
		filepath.Join(start, "a", "a"), filepath.Join(start, "home")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	stub := fmt.Sprintf("#!%s\ncase $1 in '' | *[!0-9]*) ;; *) echo \"$1\" \"$PWD\" >>\"$LOG\" ;; esac\n", bash)
	if err := os.WriteFile(filepath.Join(bin, "mark"), []byte(stub), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(bash, filepath.Join(bin, "bash")); err != nil {
		t.Fatal(err)
	}
	count, until, seed := 250, time.Time{}, uint64(1)
	if d, err := time.ParseDuration(os.Getenv("COMMAND_RANDOM")); err == nil {
		count, until, seed = 1<<30, time.Now().Add(d), uint64(time.Now().UnixNano())
		t.Log("seed ", seed)
	}
	r := rand.New(rand.NewPCG(seed, 0))
	compared := 0
	for i := 0; i < count && (until.IsZero() || time.Now().Before(until)); {
		text := (&walk{Rand: r}).list(3)
		a := Analyze(text)
		if a.Hiding || !strings.Contains(text, "mark") {
			continue
		}
		i++
		log := filepath.Join(top, fmt.Sprint("log", i)) // what an earlier text left running has another
		cmd := exec.Command(bash, "-c", `ulimit -t 2; FUNCNEST=3; eval "$1"`, "bash", text)
		cmd.Dir, cmd.Env = start, []string{"PATH=" + bin, "HOME=" + filepath.Join(start, "home"), "LOG=" + log}
		cmd.Run() // the exit status is no matter here
		compared += compareWalk(t, a, text, log, start)
	}
	if compared < 60 {
		t.Errorf("only %d places were compared: that says little", compared)
	}
}

// compareWalk compares what a run has logged with what was found, and counts what it
// could compare.
func compareWalk(t *testing.T, a *Analysis, text, log, start string) (compared int) {
	raw, _ := os.ReadFile(log) // none if nothing ran
	for line := range strings.Lines(string(raw)) {
		number, at, _ := strings.Cut(strings.TrimSpace(line), " ")
		var all []string
		fits := false
		for _, c := range a.Commands {
			if c.Name != "mark" || len(c.Args) < 2 || c.Args[1].Text != number {
				continue
			}
			dirs, anywhere := may(c)
			fits = fits || anywhere || slices.ContainsFunc(dirs, func(dir string) bool { return filepath.Join(start, dir) == at })
			all = append(all, dirs...)
			if !anywhere {
				compared++
			}
		}
		if !fits {
			t.Errorf("%q: mark %s ran in %s, and may run in %q", text, number, at, all)
		}
	}
	return compared
}
