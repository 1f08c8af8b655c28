//go:build slow && unix

package command

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A shellLab runs texts under the real bash, in a directory of its own, with a
// PATH where every program is either a stub that notes its arguments or one of
// the real wrappers. Nothing else can be started.
type shellLab struct {
	bash, dir, bin, home string
	runs                 int
}

// labStubs are the programs that are only noted, labReal those that run others.
var (
	labStubs = strings.Fields("rm ls cat echo2 git grep curl head touch cp mv npm make go wc sort tee reboot")
	labReal  = strings.Fields("timeout env nice xargs find setsid stdbuf nohup bash sh flock")
)

func newShellLab(t testing.TB) *shellLab {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed: its view of the commands cannot be compared")
	}
	root := t.TempDir()
	lab := &shellLab{bash: bash, dir: filepath.Join(root, "work"), bin: filepath.Join(root, "bin"),
		home: filepath.Join(root, "home")}
	for _, dir := range []string{lab.dir, lab.bin, lab.home} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// A stub notes its call next to the directory it was found in. That has another
	// name for every run, so that what an earlier one left in the background is not
	// taken for this one's.
	stub := fmt.Sprintf("#!%s\nprintf '%%s\\0' \"${0##*/}\" $# \"$@\" >>\"${0%%/*}.log\"\n", bash)
	for _, name := range labStubs {
		if err := os.WriteFile(filepath.Join(lab.bin, name), []byte(stub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range labReal {
		if real, err := exec.LookPath(name); err == nil {
			if err := os.Symlink(real, filepath.Join(lab.bin, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return lab
}

// run returns the arguments of every stub that bash started for text.
func (lab *shellLab) run(t testing.TB, text string) [][]string {
	entries, err := os.ReadDir(lab.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		os.RemoveAll(filepath.Join(lab.dir, e.Name()))
	}
	for _, name := range []string{"a.txt", "b.txt"} {
		if err := os.WriteFile(filepath.Join(lab.dir, name), []byte("one\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	lab.runs++
	bin := lab.bin + strconv.Itoa(lab.runs)
	if err := os.Symlink(lab.bin, bin); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	// As the runner does it: the text is evaluated, not given to -c.
	cmd := exec.CommandContext(ctx, lab.bash, "-c", `FUNCNEST=3; enable -n kill; ulimit -t 2; eval "$1"`, "bash", text)
	cmd.Dir = lab.dir
	cmd.Env = []string{"PATH=" + bin, "HOME=" + lab.home, "LC_ALL=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()                                      // the exit status is no matter here
	syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left in the background
	return readLog(t, bin+".log")
}

func readLog(t testing.TB, name string) [][]string {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	fields := strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")
	var calls [][]string
	for len(fields) >= 2 {
		n, err := strconv.Atoi(fields[1])
		if err != nil || len(fields) < 2+n {
			t.Fatalf("log of the stubs is damaged: %q", data)
		}
		calls = append(calls, append([]string{fields[0]}, fields[2:2+n]...))
		fields = fields[2+n:]
	}
	return calls
}

// covered reports whether a call that bash made is among the commands found:
// the same program, and every static word in its place.
func covered(a *Analysis, call []string, home string) bool {
	return slices.ContainsFunc(a.Commands, func(c Simple) bool {
		return c.Name == call[0] && fits(c.Args[1:], call[1:], home)
	})
}

// fits matches words against arguments; a word that is not static stands for
// any number of them.
func fits(words []Word, args []string, home string) bool {
	switch {
	case len(words) == 0:
		return len(args) == 0
	case words[0].Static:
		text := words[0].Text
		if words[0].Home {
			text = home + strings.TrimPrefix(text, "~")
		}
		return len(args) > 0 && args[0] == text && fits(words[1:], args[1:], home)
	case words[0].single:
		prefix := words[0].prefix
		if words[0].Home {
			prefix = home + strings.TrimPrefix(prefix, "~")
		}
		return len(args) > 0 && strings.HasPrefix(args[0], prefix) && fits(words[1:], args[1:], home)
	}
	for n := 0; n <= len(args); n++ {
		if fits(words[1:], args[n:], home) {
			return true
		}
	}
	return false
}

// compare runs text under bash and reports every call that Analyze missed.
func (lab *shellLab) compare(t testing.TB, text string) {
	t.Helper()
	a := Analyze(text)
	calls := lab.run(t, text)
	if a.Hiding {
		return
	}
	for _, call := range calls {
		if !covered(a, call, lab.home) {
			var found []string
			for _, c := range a.Commands {
				found = append(found, c.Text)
			}
			t.Errorf("%q: bash ran %q\nfound %q\nundecidable %q", text, call, found, a.Undecidable)
		}
	}
}

// TestAgainstBash runs commands under the real bash and asks that every program
// it started was found. The commands are those of testdata/commands.txt (only
// stubs can start) and testdata/tricky.txt.
func TestAgainstBash(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	lab := newShellLab(t)
	texts := append(corpus(t, "tricky.txt"), corpus(t, "commands.txt")...)
	started := 0
	for _, text := range texts {
		if !harmless(text) {
			continue
		}
		lab.compare(t, text)
		started += len(lab.run(t, text))
	}
	if started < 200 {
		t.Errorf("bash started only %d programs: the comparison says little", started)
	}
}

// harmless reports whether a text may run under the real bash: it starts nothing
// by its path, signals no one, and writes nothing outside its directory.
func harmless(text string) bool {
	for _, s := range []string{"/dev/", "/bin/", "sleep", "kill"} {
		if strings.Contains(text, s) {
			return false
		}
	}
	return !slices.ContainsFunc(Analyze(text).Writes,
		func(w Word) bool { return strings.HasPrefix(w.Text, "/") || strings.Contains(w.Text, "..") })
}
