//go:build slow

package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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
