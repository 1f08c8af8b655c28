package sandbox

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/toolhost/toolhost/integration/samples"
)

// What people do all day works, and does what it does outside.
func TestBenign(t *testing.T) {
	t.Parallel()
	slow(t)
	goRoot := "/usr/local/go/bin"
	if path, err := exec.LookPath("go"); err == nil {
		goRoot = strings.TrimSuffix(path, "/go")
	}
	f := makeFixture(t)
	f.env = append(f.env, "PATH="+goRoot+":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
		"GOCACHE="+f.tmp+"/gocache", "GOPATH="+f.tmp+"/gopath", "GOFLAGS=-mod=mod", "GOTOOLCHAIN=local", "GOPROXY=off",
		"GIT_AUTHOR_NAME=x", "GIT_AUTHOR_EMAIL=x@example.com", "GIT_COMMITTER_NAME=x", "GIT_COMMITTER_EMAIL=x@example.com")
	os.RemoveAll(f.ws + "/.git")
	if _, err := os.Stat("/usr/bin/git"); err == nil {
		for _, args := range [][]string{{"init", "-q"}, {"add", "-f", ".env", "src", "go.mod"},
			{"commit", "-qm", "x"}} {
			cmd := exec.Command("/usr/bin/git", args...)
			cmd.Dir, cmd.Env = f.ws, f.env
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("git %s: %v\n%s", args, err, out)
			}
		}
	}
	sandboxes := available(t, f)
	f.overlay = true
	if s := f.start(t, overlaidBackend); s != nil {
		sandboxes[overlaidBackend] = s
	}
	for backend, s := range sandboxes {
		if raceEnabled && backend == backendLandlock {
			continue
		}
		before := f.snapshot(t)
		for i, c := range []struct{ name, needs, script, want string }{
			{"ls", "", `ls`, "src"},
			{"new file", "", `echo n > new && cat new && rm new`, "n"},
			{"new directory", "", `mkdir -p a/b && echo x > a/b/c && mv a/b/c a/d && cat a/d && rm -r a`, "x"},
			{"sed in place", "", `cp go.mod m && sed -i s/example/changed/ m && grep -c changed m && rm m`, "1"},
			{"mktemp", "", `f=$(mktemp) && echo hi > "$f" && cat "$f" && rm "$f"`, "hi"},
			{"atomic rename", "", `for i in 1 2 3; do echo $i > x.tmp && mv x.tmp x; done; cat x; rm x`, "3"},
			{"rename between directories", "", `mkdir d && echo y > d/y && mv d/y src/ && mv src/y d/ && cat d/y && rm -r d`, "y"},
			{"hard link and symlink", "", `echo l > l1 && ln l1 l2 && ln -s l2 l3 && cat l3 && rm l1 l2 l3`, "l"},
			{"permissions", "", `echo x > p && chmod 700 p && stat -c %a p && touch -d @0 p && rm p`, "700"},
			{"pipes", "", `seq 1000 | sort -rn | head -1`, "1000"},
			{"process substitution", "", `diff <(echo a) <(echo a) && echo same`, "same"},
			{"here document", "", "cat <<E\nhere\nE\n", "here"},
			{"null", "", `echo x > /dev/null && head -c3 /dev/zero | wc -c && head -c1 /dev/urandom | wc -c`, "3\n1"},
			{"stdout by name", "", `echo a > /dev/stdout; echo b > /dev/stderr; echo c > /proc/self/fd/1`, "a\nb\nc"},
			{"shared memory", "", `echo s > /dev/shm/x && cat /dev/shm/x && rm /dev/shm/x`, "s"},
			{"reading the system", "", `grep -c ^root: /etc/passwd; cat /proc/meminfo | grep -c MemTotal; ls /sys/devices/system/cpu >/dev/null && nproc > /dev/null && echo ok`, "1\n1\nok"},
			{"own result", "", `cat "$STATE/results/own/1"; ls "$STATE/results"`, "my own result\nown"},
			{"ps", "ps", `ps -C ps -o comm=`, "ps"},
			{"signals", "", `sleep 100 & kill $!; wait $!; echo $?`, "143"},
			{"job", "", `(sleep 0.01; echo late) & wait; echo end`, "late\nend"},
			{"user", "", `id -u; [ -O go.mod ] && echo mine`, "mine"},
			{"umask", "", `umask 027; echo > u; stat -c %a u; rm u`, "640"},
			{"resource limits", "", `ulimit -n 50 && ulimit -n`, "50"},
			{"python", "python3", `python3 -c 'import tempfile, multiprocessing as m
with tempfile.TemporaryDirectory() as d: print(m.Pool(2).map(abs, [-1, -2]))'`, "[1, 2]"},
			{"terminal", "script", `script -qec 'tty >/dev/null && echo on a terminal' /dev/null`, "on a terminal"},
			{"tracing own children", "strace", `strace -o "$TMPDIR/trace" true && grep -c execve "$TMPDIR/trace"`, "1"},
			{"git status", "git", `git status --short | grep -v '^ M .env\|^??' ; echo done`, "done"},
			{"git commit", "git", `git rm -q --cached .env 2>/dev/null; echo .env > .gitignore; git add .gitignore; echo >> go.mod; git commit -qam 'do not rm -rf /' && git log -1 --format=%s`, "do not rm -rf /"},
			{"git add of a denied file", "git", `git add -f .env; git --no-pager diff --cached --stat; echo end`, "unable to index file '.env'\nfatal: adding files failed\nend"},
			{"git branches", "git", `b=side$RANDOM; git checkout -q -b $b && echo $b > z && git add z && git commit -qm z && git checkout -q - && git merge -q $b && [ "$(cat z)" = $b ] && echo merged`, "merged"},
			{"git stash", "git", `echo s >> go.mod && git stash -q -- go.mod && git stash pop -q && tail -1 go.mod; git checkout -q go.mod`, "s"},
			{"go build", "go", goBuild, "built"},
			{"large files", "", `head -c 20000000 /dev/zero > big && stat -c %s big && rm big`, "20000000"},
			{"fifo and socket", "python3", `mkfifo f && (echo through > f &) && cat f && rm f && python3 -c '
import socket, os
s = socket.socket(socket.AF_UNIX); s.bind("u.sock"); s.listen()
c = socket.socket(socket.AF_UNIX); c.connect("u.sock"); s.accept()[0].send(b"socket"); print(c.recv(9).decode()); os.unlink("u.sock")'`, "through\nsocket"},
			{"local server", "python3", `python3 -c '
import socket
s = socket.create_server(("127.0.0.1", 0)); c = socket.create_connection(s.getsockname()); s.accept()[0].send(b"local"); print(c.recv(9).decode())
s = socket.create_server(("::1", 0), family=socket.AF_INET6); print("six")'`, "local\nsix"},
		} {
			if backend != Namespaces && i%samples.Step(1) != 0 {
				continue
			}
			t.Run(string(backend)+"/"+c.name, func(t *testing.T) {
				if _, err := exec.LookPath(c.needs); c.needs != "" && err != nil {
					t.Skipf("no %s here", c.needs)
				}
				if c.needs == "go" && (testing.Short() || raceEnabled) {
					t.Skip("building takes a while")
				}
				if why := knownLosses[backend][c.name]; why != "" {
					t.Skip("known loss: " + why)
				}
				r := runIn(t, s, f.ws, f.env, "/bin/bash", "-c", c.script)
				if !strings.Contains(r.output, c.want) {
					t.Errorf("got %q, want %q", r.output, c.want)
				}
			})
		}
		if diff := cmp.Diff(before, f.snapshot(t)); backend == overlaidBackend && diff != "" {
			t.Errorf("the changes reached the disk (-before +after):\n%s", diff)
		}
	}
}

// knownLosses is what does not work under a backend, and why.
var knownLosses = map[Backend]map[string]string{backendLandlock: gaps(
	"names in a masked directory stay visible", "own result").and(
	"a denied file inside the workspace is open", "git add of a denied file").and(
	"the host's /dev/shm is not writable", "python", "shared memory").and(
	"no sockets", "fifo and socket", "local server").and(
	"the host's terminals cannot be told from new ones", "terminal",
)}
