//go:build slow

package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/guard/sandbox/execgate"
	"github.com/toolhost/toolhost/integration/samples"
)

// flipThread starts the program by posix_spawn, while another thread changes its argument.
const flipThread = `python3 -c "
import ctypes, os, sys, threading
sys.setswitchinterval(1e-6)
libc = ctypes.CDLL(None)
arg = ctypes.create_string_buffer(b'ran-----good', 64)
argv = (ctypes.c_char_p * 3)(b'victim', ctypes.cast(arg, ctypes.c_char_p), None)
argv = (ctypes.c_void_p * 3)(ctypes.cast(argv[0], ctypes.c_void_p), ctypes.addressof(arg), None)
name = ctypes.create_string_buffer(b'./victim'); done = False
argv[0] = ctypes.addressof(name)
def flip():
    while not done:
        for word in (b'good', b'bad-'):
            for _ in range(40): ctypes.memmove(ctypes.addressof(arg) + 8, word, 4)
threading.Thread(target=flip).start()
pid = ctypes.c_int()
try:
    for i in range(int(os.environ['N'])):
        text = b'%d\0' % i
        ctypes.memmove(ctypes.addressof(arg) + 12, text, len(text))
        if libc.posix_spawn(ctypes.byref(pid), name, None, None, argv, None) == 0: os.waitpid(pid.value, 0)
finally:
    done = True"`

// What another thread or process changes after the look does not run: not one of many tries has an effect.
func TestExecRace(t *testing.T) {
	slow(t)
	f := newFixture(t)
	f.victim(t)
	tries := fmt.Sprint(samples.Rounds(600)) // with 30 the last look at the memory can be a refusal each time
	gated(t, f, func(t *testing.T, s *Sandbox) {
		for _, c := range []struct {
			way, script string
			confirm     bool // else it is done without asking
		}{{"thread", flipThread, false}, {"memory", "$ATTACK flip $N ./victim", true}} {
			asked, killed := map[string]bool{}, 0 // by the number of the try: one that a stop interrupts is judged again
			var mu sync.Mutex
			judge := func(_ context.Context, e *execgate.Exec) execgate.Verdict {
				mu.Lock()
				defer mu.Unlock()
				if filepath.Base(e.Path) == "victim" {
					number := e.Args[1][len("ran-----good"):]
					if strings.Contains(e.Args[1], "bad-") {
						delete(asked, number)
						return execgate.Verdict{}
					}
					asked[number] = true
				}
				return execgate.Verdict{Allow: true, Confirm: c.confirm, Failed: func(string) {
					mu.Lock()
					defer mu.Unlock()
					killed++
				}}
			}
			r := runGated(t, s, f, judge, "export N="+tries+"; "+c.script)
			bad, _ := filepath.Glob(f.ws + "/ran*bad-*")
			good, _ := filepath.Glob(f.ws + "/ran*good*")
			mu.Lock() // a judge of a process that was killed may still run
			t.Logf("%s: %d were allowed, %d of them killed, %d ran as they were judged, %d as something else", c.way,
				len(asked), killed, len(good), len(bad))
			if len(bad) > 0 || len(asked) == 0 || len(asked) != killed+len(good) {
				t.Errorf("%s: said %q", c.way, r.output)
			}
			mu.Unlock()
			for _, path := range append(bad, good...) {
				os.Remove(path)
			}
		}
	})
}

// A process that is killed while it is compared, because the command has ended, is neither refused nor changed.
func TestExecEnded(t *testing.T) {
	slow(t)
	times := samples.Rounds(50)
	f := newFixture(t)
	f.victim(t)
	gated(t, f, func(t *testing.T, s *Sandbox) {
		for range times {
			r := newRefuser(t, f.ws+"/victim")
			r.confirm = true
			runGated(t, s, f, r.judge, `for i in 1 2 3; do (exec sleep 0.05) & done; disown -a`)
			r.mu.Lock()
			if len(r.failed) > 0 {
				t.Errorf("%q", r.failed)
			}
			r.mu.Unlock()
		}
	})
}

// A thousand and more programs at once lose none.
func TestExecStorm(t *testing.T) {
	slow(t)
	f := newFixture(t)
	f.victim(t)
	n := samples.Raced(2000)
	gated(t, f, func(t *testing.T, s *Sandbox) {
		for _, confirm := range []bool{false, true} {
			r := newRefuser(t, f.ws+"/victim")
			r.confirm = confirm
			got := runGated(t, s, f, r.judge, fmt.Sprintf(`seq %d | xargs -P 8 -n 1 /bin/echo | wc -l`, n))
			if got.output != fmt.Sprintln(n) || len(r.failed) > 0 {
				t.Errorf("confirm %v: %q %q", confirm, got.output, r.failed)
			}
		}
	})
}

// A program that is masked is started in no way, even where the judge is deceived, and each attempt is judged by its name.
func TestExecMasked(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.victim(t)
	program, err := filepath.EvalSymlinks("/usr/bin/touch")
	if err != nil {
		t.Skip(err)
	}
	p := f.policy()
	p.Execs, p.Programs = true, []string{program, f.ws + "/victim"} // the second can be written, and is not masked
	s, err := Start(t.Context(), p, Options{Backends: []Backend{Namespaces}})
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { s.Close() })
	for i, way := range []struct{ name, script string }{
		{"bash", `touch made`}, {"dash", `dash -c 'touch made; :'`}, {"path", program + ` made`}, {"env", `env touch made`}, {"xargs", `echo made | xargs touch`},
		{"find", `find /etc/passwd -exec touch made \;`}, {"python", `python3 -c 'import os; os.system("touch made")'`},
		{"posix_spawnp", `python3 -c 'import os; os.posix_spawnp("touch", ["x", "made"], os.environ)'`},
		{"flickering", `for i in $(seq 40); do rm -f n; ln -s /bin/true n; rm -f n; ln -s ` + program + ` n; done & for i in $(seq 80); do ./n made 2>/dev/null; done; wait; rm -f n; touch made`},
		{"link", `ln -s ` + program + ` l; ./l made; rm l`}, {"another name", `exec -a x touch made`}, {"loader", `$LOADER ` + program + ` made`},
		{"script", `echo "#!` + program + `" > i; chmod +x i; ./i; rm i`}, {"copy", `cp ` + program + ` c || cat ` + program + ` > c && chmod +x c && ./c made; rm -f c`},
	} {
		for _, deceived := range []bool{false, true} {
			if samples.Step(1) > 1 && deceived != (i%2 == 0) {
				continue
			}
			named := false
			var mu sync.Mutex
			got := runGated(t, s, f, func(_ context.Context, e *execgate.Exec) execgate.Verdict {
				mu.Lock()
				defer mu.Unlock()
				touch := slices.ContainsFunc(e.Files, func(f execgate.File) bool { return f.Name == program })
				if named = named || touch; touch && e.Unreadable != nil {
					t.Errorf("%s: %v", way.name, e.Unreadable)
				}
				return execgate.Verdict{Allow: deceived || !touch}
			}, way.script)
			mu.Lock()
			if _, err := os.Lstat(f.ws + "/made"); err == nil || !named && way.name != "copy" {
				t.Errorf("%s: named %v, %v; said %q", way.name, named, err, got.output)
			}
			mu.Unlock()
		}
	}
	if r := runIn(t, s, f.ws, f.env, "/bin/sh", "-c", "./victim ran && ls ran"); r.output != "ran\n" {
		t.Errorf("the program that is not masked: %q", r.output)
	}
}

// Arguments are read within limits, of which the judge is told.
func TestExecCut(t *testing.T) {
	f := newFixture(t)
	gated(t, f, func(t *testing.T, s *Sandbox) {
		var last *execgate.Exec
		judge := func(_ context.Context, e *execgate.Exec) execgate.Verdict {
			last = e
			return execgate.Verdict{Allow: true}
		}
		for script, words := range map[string]int{
			`/bin/true $(seq 100000)`: 4096, // see execgate.Exec
			`python3 -c 'import os; os.execv("/bin/true", ["x"] + ["y" * 100000] * 18)'`: 2,
		} {
			r := runGated(t, s, f, judge, script+`; echo $?`)
			if r.output != "0\n" || !last.Cut || len(last.Args) != words ||
				len(strings.Join(last.Args, " ")) > 64<<10 {
				t.Errorf("%s: said %q; cut: %v, %d words, %d bytes", script, r.output, last.Cut, len(last.Args),
					len(strings.Join(last.Args, " ")))
			}
		}
	})
}

// So many programs may wait for their judges at once.
func TestExecManyHeld(t *testing.T) {
	t.Parallel()
	many := samples.Rounds(1000)
	f := newFixture(t)
	f.victim(t)
	gated(t, f, func(t *testing.T, s *Sandbox) {
		var waiting sync.WaitGroup
		waiting.Add(many)
		all := make(chan struct{})
		go func() { waiting.Wait(); close(all) }()
		judge := func(ctx context.Context, e *execgate.Exec) execgate.Verdict {
			if filepath.Base(e.Path) == "victim" {
				waiting.Done()
				<-all
			}
			return execgate.Verdict{Allow: true}
		}
		r := runGated(t, s, f, judge, fmt.Sprintf(`for i in $(seq %d); do ./victim held$i & done; wait; ls | grep -c ^held; rm held*`, many))
		if r.output != fmt.Sprintln(many) {
			t.Errorf("said %q", r.output)
		}
	})
}
