package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// kernelAttacks go for what the kernel keeps for a user or for all, next to files.
var kernelAttacks = []attack{
	{"everything of the host in proc", `$ATTACK reach $HOST`, true},
	{"everything of process 1 in proc", `$ATTACK reach 1 $PPID`, false},
	{"descriptors by pidfd", `$ATTACK pidfd $PPID; $ATTACK pidfd 1; exec $ATTACK pidfd $HOST`, false},
	{"refused calls", `$ATTACK refused`, false},
	{"writable kernel files", `$ATTACK writable /proc/sys /proc/self /proc/fs /proc/irq /proc/bus /sys`, false},
	{"System V shared memory", `$ATTACK shm $SHM`, true},
	{"message queue", `$ATTACK mq $QUEUE`, true},
	{"terminal of the host", `timeout 2 head -n 1 < $TERMINAL`, true},
	{"typing for the host", `printf '` + breach + `\n' > $TERMINAL && echo ` + breach, true},
	{"file capabilities", `cp /bin/cat x; $ATTACK capability x; rm -f x`, false},
	{"out of a moved directory", `mkdir -p src/a/b; $ATTACK moveout src/a/b b ../../.env; $ATTACK moveout b src/b ../../.env; rm -rf b src/a src/b`, false},
	{"descriptor in a socket", `python3 - <<'P'
import socket, os
a, b = socket.socketpair(socket.AF_UNIX)
socket.send_fds(a, [b"x"], [os.open(".env", os.O_PATH), os.open("secrets", os.O_PATH)])
for f in socket.recv_fds(b, 1, 2)[1]:
    for name in ("/proc/self/fd/%d" % f, "/proc/self/fd/%d/k" % f):
        try: print(open(name).read())
        except OSError: pass
P`, true},
	{"process of everyone", `for p in /proc/[0-9]*; do [ "$(readlink $p/ns/pid)" = "$(readlink /proc/self/ns/pid)" ] || [ -z "$(readlink $p/ns/pid)" ] || echo ` + breach + ` $p; done`, false},
	{"core dump", `grep -q 'Max core file size  *[01]  *[01] ' /proc/self/limits || echo ` + breach, false},
	{"first to go", `[ "$(cat /proc/self/oom_score_adj)" -ge ` + "200" + ` ] || echo ` + breach + `; echo -1000 > /proc/self/oom_score_adj && echo ` + breach, true},
}

func init() { attacks = append(attacks, kernelAttacks...) }

// lend gives the host what a command is not to have: shared memory, a queue and a
// terminal somebody types at.
func (f *fixture) lend(t testing.TB) {
	t.Helper()
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, os.Getpagesize(), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	memory, err := unix.SysvShmAttach(id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	copy(memory, secret)
	unix.SysvShmDetach(memory)
	queue := filepath.Base(f.base)
	if fd, err := openQueue(queue, unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC); err != nil {
		t.Logf("no message queues here: %v", err)
	} else {
		unix.Close(fd)
	}
	t.Cleanup(func() { removeQueue(queue) })
	f.env = append(f.env, "SHM="+strconv.Itoa(id), "QUEUE="+queue, "TERMINAL="+terminal(t))
}

// terminal opens a terminal at which a secret has been typed.
func terminal(t testing.TB) string {
	t.Helper()
	ptmx, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Logf("no terminals here: %v", err)
		return "/dev/null"
	}
	t.Cleanup(func() { ptmx.Close() })
	n, err := unix.IoctlGetInt(int(ptmx.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(ptmx.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(ptmx, secret)
	return "/dev/pts/" + strconv.Itoa(n)
}

// A command cannot reach one of another sandbox, which has the same user.
func TestAttackOtherSandbox(t *testing.T) {
	f := newFixture(t)
	for backend, s := range available(t, f) {
		t.Run(string(backend), func(t *testing.T) {
			mine, err := Start(t.Context(), f.policy(), Options{Backends: []Backend{backend}})
			if err != nil {
				t.Fatal(err)
			}
			defer mine.Close()
			d := duration()
			p, err := s.Spawn(Spec{Argv: []string{"/bin/sleep", d}, Env: append(f.env, "KEY="+secret)})
			if err != nil {
				t.Fatal(err)
			}
			waitFor(t, "the other command", func() bool { return sleeper(t, d) > 0 })
			other := sleeper(t, d)
			script := `tr '\0' '\n' < /proc/$OTHER/environ; $ATTACK reach $OTHER; $ATTACK ptrace $OTHER; $ATTACK readmem $OTHER
				for p in /proc/[0-9]*; do tr '\0' '\n' < $p/environ | grep KEY=; done
				$ATTACK pidfd $OTHER; kill -9 $OTHER $(pgrep -f '^/bin/sleep '"$D"); exit 0`
			r := runIn(t, mine, f.ws, append(f.env, "D="+d, "OTHER="+strconv.Itoa(other)), "/bin/bash", "-c", script)
			if strings.Contains(r.output, secret) || strings.Contains(r.output, breach) {
				t.Errorf("got through:\n%s", r.output)
			}
			if sleeper(t, d) != other {
				t.Error("the other command was ended")
			}
			p.Kill()
		})
	}
}

// sleeper returns the process that runs "/bin/sleep duration", or 0.
func sleeper(t testing.TB, duration string) int {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		if b, err := os.ReadFile(l); err == nil && string(b) == "/bin/sleep\x00"+duration+"\x00" {
			n, _ := strconv.Atoi(filepath.Base(filepath.Dir(l)))
			return n
		}
	}
	return 0
}
