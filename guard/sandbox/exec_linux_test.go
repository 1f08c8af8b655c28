package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/execgate"
	"github.com/toolhost/toolhost/guard/sandbox/internal/place"
	"github.com/toolhost/toolhost/integration/samples"
)

// gated starts a sandbox with each backend whose commands' programs are judged.
func gated(t *testing.T, f *fixture, test func(t *testing.T, s *Sandbox)) {
	p := f.policy()
	p.Execs = true
	for _, b := range backendsUnderTest() {
		t.Run(string(b), func(t *testing.T) {
			s, err := Start(t.Context(), p, Options{Backends: []Backend{b}})
			if errors.Is(err, ErrUnavailable) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			test(t, s)
		})
	}
}

// refuser is a judge that refuses some files by their number, and files without a name.
type refuser struct {
	confirm bool

	mu      sync.Mutex
	files   []place.Inode
	seen    []*execgate.Exec
	refused []execgate.Asker
	failed  []string
}

// newRefuser refuses the file at path.
func newRefuser(t testing.TB, path string) *refuser {
	t.Helper()
	fd, err := place.OpenPath(path)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	id, err := place.InodeOf(fd)
	if err != nil {
		t.Fatal(err)
	}
	return &refuser{files: []place.Inode{id}}
}

func (r *refuser) judge(_ context.Context, e *execgate.Exec) execgate.Verdict {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, e)
	if e.Unreadable != nil {
		r.refused = append(r.refused, e.Asker())
	}
	for _, f := range e.Files {
		if f.Unlinked || slices.Contains(r.files, place.Inode{Dev: f.Dev, Ino: f.Inode}) {
			r.refused = append(r.refused, e.Asker())
			return execgate.Verdict{}
		}
	}
	return execgate.Verdict{Allow: true, Confirm: r.confirm, Failed: func(why string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.failed = append(r.failed, why)
	}}
}

// runGated is runIn for a command whose programs j judges.
func runGated(t testing.TB, s *Sandbox, f *fixture, j execgate.Judge, script string) result {
	t.Helper()
	g := execgate.New()
	defer g.Close()
	var judging sync.RWMutex // the test reads what judges write, and the command may end before the judge of a killed program
	if j != nil {
		g.Judge(func(ctx context.Context, e *execgate.Exec) execgate.Verdict {
			judging.RLock()
			defer judging.RUnlock()
			v := j(ctx, e)
			if failed := v.Failed; failed != nil {
				v.Failed = func(why string) {
					judging.RLock()
					defer judging.RUnlock()
					failed(why)
				}
			}
			return v
		})
	}
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	p, err := s.Spawn(Spec{Argv: []string{"/bin/bash", "-c", script}, Dir: f.ws, Env: f.env,
		Files: []*os.File{nil, w, w}, Execs: g})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	text := make(chan string)
	go func() {
		b, _ := io.ReadAll(out)
		text <- string(b)
	}()
	status, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	said := <-text // after the last process, those in the background included
	ended, err := p.Kill()
	if err != nil {
		t.Fatal(err)
	}
	g.Close()
	judging.Lock()
	defer judging.Unlock()
	return result{said, status, ended}
}

// waysToStart start the program ./victim, which makes the file that is its argument. $M is a name that is new.
var waysToStart = []struct{ name, script string }{
	{"plainly", `./victim $M`},
	{"sh -c", `sh -c "./victim $M"`},
	{"a name in variables", `X=./vic Y=tim; $X$Y $M`},
	{"env", `env timeout 5 nice ./victim $M`},
	{"xargs", `echo $M | xargs ./victim`},
	{"find", `find /etc/passwd -exec ./victim $M \;`},
	{"PATH", `PATH=$PWD:$PATH; victim $M; env victim $M`},
	{"make", `printf 'all:\n\t./victim %s\n' $M | make -s -f -`},
	{"make of several", `printf 'all: a b c d\na b c d:\n\t./victim %s\n' $M | make -s -k -j4 -f -`},
	{"python os.system", `python3 -c "import os; os.system('./victim $M')"`},
	{"python subprocess", `python3 -c "import subprocess; subprocess.run(['./victim','$M'])"`},
	{"python posix_spawn", `python3 -c "import os; os.waitpid(os.posix_spawn('./victim',['x','$M'],os.environ),0)"`},
	{"python threads", `python3 -c "
import threading, subprocess
def f(): subprocess.run(['./victim','$M'])
for t in [threading.Thread(target=f) for _ in range(8)]: t.start()"`},
	{"exec by a thread", `python3 -c "
import threading, os
t = threading.Thread(target=lambda: os.execv('./victim', ['x','$M'])); t.start(); t.join()"`},
	{"perl", `perl -e 'system "./victim", $ENV{M}'`},
	{"another name", `exec -a innocent ./victim $M`},
	{"symbolic link", `ln -s victim s$M; ./s$M $M`},
	{"hard link", `ln victim h$M; ./h$M $M`},
	{"script", `echo "#!$PWD/victim" > i$M; chmod +x i$M; ./i$M`},
	{"relative script", `printf '#!./victim -c\n' > i$M; chmod 111 i$M; ./i$M`},
	{"script of a script", `echo "#!$PWD/victim" > i$M; echo "#! $PWD/i$M x" > j$M; chmod +x i$M j$M; ./j$M`},
	{"loader", `$LOADER ./victim $M`},
	{"loader with options", `$LOADER --argv0 x --library-path /lib $PWD/victim $M`},
	{"loader without a directory", `$LOADER --library-path $PWD victim $M`},
	{"script of the loader", `printf "#!$LOADER ./victim\n" > i$M; chmod +x i$M; ./i$M`},
	{"copy in memory", `python3 -c "
import os
f = os.memfd_create('x'); os.write(f, open('victim','rb').read()); os.execve(f, ['x','$M'], os.environ)"`},
	{"descriptor", `python3 -c "
import os
os.execve(os.open('victim', os.O_RDONLY), ['x','$M'], os.environ)"`},
	{"descriptor without reading", `python3 -c "
import os
os.execve(os.open('victim', os.O_PATH), ['x','$M'], os.environ)"`},
	{"descriptor in proc", `exec 7<victim; /proc/self/fd/7 $M; /dev/fd/7 $M; /proc/$BASHPID/fd/7 $M`},
	{"directory in proc", `/proc/self/cwd/victim $M; /proc/self/root$PWD/victim $M; /proc/thread-self/cwd/victim $M`},
	{"removed", `cp victim v$M; exec 7<v$M; rm v$M; /proc/self/fd/7 $M`},
	{"background", `./victim $M & sleep 0.1; wait`},
	{"after the shell", `(sleep 0.2; ./victim $M) & disown`},
	{"of its own session", `setsid sh -c "(sleep 0.1; setsid ./victim $M) &"`},
	{"execveat below a directory", `$ATTACK execveat $WS victim $M`},
	{"execveat of a link", `$ATTACK execveat $WS ./victim $M`},
	{"exec by vfork", `$ATTACK vfork ./victim $M`},
}

// A program that the judge refuses is started in no way.
func TestExecGate(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.victim(t)
	gated(t, f, func(t *testing.T, s *Sandbox) {
		for i, way := range waysToStart {
			if i%samples.Step(1) != 0 {
				continue
			}
			for _, confirm := range []bool{false, true} {
				if s.Report().Backend != Namespaces && confirm != (i%2 == 0) {
					continue // they take longer
				}
				r := newRefuser(t, f.ws+"/victim")
				r.confirm = confirm
				mark := fmt.Sprintf("m%d", i)
				got := runGated(t, s, f, r.judge, "export M="+mark+"; "+way.script)
				r.mu.Lock() // a judge may still be asked for a process that ended with the command
				for _, e := range r.seen {
					if e.Unreadable != nil && strings.Contains(e.Unreadable.Error(), "memory cannot be read") {
						t.Errorf("%s: %s: %v", way.name, e.Path, e.Unreadable)
					}
				}
				if _, err := os.Lstat(filepath.Join(f.ws, mark)); err == nil {
					t.Errorf("%s, confirm %v: the program ran:\n%s", way.name, confirm, got.output)
				}
				if len(r.refused) == 0 {
					t.Errorf("%s, confirm %v: nothing was refused:\n%s", way.name, confirm, got.output)
				}
				if len(r.failed) > 0 {
					t.Errorf("%s: %q", way.name, r.failed)
				}
				r.mu.Unlock()
				leftovers, _ := filepath.Glob(f.ws + "/?" + mark)
				for _, path := range leftovers {
					os.Remove(path)
				}
			}
		}
	})
}

// victim makes the program ./victim, and tells where the dynamic loader is.
func (f *fixture) victim(t testing.TB) {
	t.Helper()
	program, err := os.ReadFile("/usr/bin/touch")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.ws+"/victim", program, 0o755); err != nil {
		t.Fatal(err)
	}
	loaders, _ := filepath.Glob("/lib*/ld-linux*.so*")
	works := func(loader string) bool { return exec.Command(loader, "/bin/echo").Run() == nil }
	i := slices.IndexFunc(loaders, works) // the first may be that of another architecture
	if i < 0 {
		t.Skip("no dynamic loader starts /bin/echo")
	}
	f.env = append(f.env, "LOADER="+loaders[i])
}

// The judge learns what is started, where and by whom.
func TestExecSeen(t *testing.T) {
	f := newFixture(t)
	f.victim(t)
	gated(t, f, func(t *testing.T, s *Sandbox) {
		var got []string
		var mu sync.Mutex
		judge := func(_ context.Context, e *execgate.Exec) execgate.Verdict {
			mu.Lock()
			defer mu.Unlock()
			names := ""
			for _, file := range e.Files {
				names += " " + filepath.Base(file.Name)
				if file.Handle == nil || file.Inode == 0 || file.Size == 0 || file.Ctime.IsZero() {
					t.Errorf("%s: %+v", e.Path, file)
				}
			}
			got = append(got, fmt.Sprint(e.Path, names, " ", e.Args, " ", e.Dir, " ", e.Asker().Chain))
			return execgate.Verdict{Allow: true}
		}
		runGated(t, s, f, judge, `cd src; printf '#! /bin/sh\n../victim x\n' > ../p; chmod 755 ../p; ../p "a b"; :`)
		sh, _ := filepath.EvalSymlinks("/bin/sh")
		chmod, _ := exec.LookPath("chmod")
		want := []string{
			chmod + " chmod [chmod 755 ../p] " + f.ws + "/src []",
			f.ws + "/p p " + filepath.Base(sh) + " [../p a b] " + f.ws + "/src []",
			f.ws + "/victim victim [../victim x] " + f.ws + "/src [p]",
		}
		if slices.Equal(got, want) {
			return
		}
		t.Errorf("seen:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	})
}

// While one program waits for its judge, others run, and the judge learns when the wait is over.
func TestExecHeld(t *testing.T) {
	f := newFixture(t)
	f.victim(t)
	gated(t, f, func(t *testing.T, s *Sandbox) {
		os.Remove(f.ws + "/asked")
		judge := func(ctx context.Context, e *execgate.Exec) execgate.Verdict {
			if filepath.Base(e.Path) != "victim" {
				return execgate.Verdict{Allow: true}
			}
			if err := os.WriteFile(f.ws+"/asked", nil, 0o644); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			return execgate.Verdict{Allow: true}
		}
		r := runGated(t, s, f, judge, `./victim held & until [ -e asked ]; do /bin/sleep 0.01; done; kill -KILL $!; wait; echo done`)
		if !strings.Contains(r.output, "done") {
			t.Errorf("said %q", r.output)
		}
		if _, err := os.Lstat(f.ws + "/held"); err == nil {
			t.Error("a program ran that was not allowed")
		}
	})
}

// A gate without a judge, and one that is closed, let nothing start but the command itself.
func TestExecGateZero(t *testing.T) {
	f := newFixture(t)
	gated(t, f, func(t *testing.T, s *Sandbox) {
		if r := runGated(t, s, f, nil, `/bin/true; echo $?`); !strings.HasSuffix(r.output, "126\n") {
			t.Errorf("said %q", r.output)
		}
		if r := runIn(t, s, f.ws, f.env, "/bin/sh", "-c", "/bin/echo free"); r.output != "free\n" {
			t.Errorf("without a gate: %q", r.output)
		}
	})
}
