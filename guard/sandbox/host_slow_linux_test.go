//go:build slow

package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/connectgate"
)

// The program of a connection is the one that has called connect(2), whatever its process runs when the question comes,
// and whichever process holds the socket then.
func TestHostsKnowTheProgram(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	f := newFixture(t)
	w := newOuterNetwork(t)
	s := startWithTUN(t, f, w.options())
	const begin = `python3 -c '
import os, socket, sys
s = socket.socket(); s.setblocking(False); os.set_inheritable(s.fileno(), True)
try: s.connect((sys.argv[1], 80))
except BlockingIOError: pass
`
	for i, c := range []struct{ name, script, program string }{
		{"itself", begin + `open(sys.argv[2]).readline()' a.asked.test`, "python3"},
		{"another program afterwards", begin + `os.execvp("head", ["head", "-n1", sys.argv[2]])' b.asked.test`, "python3"},
		{"a child that has the socket", begin + `os.spawnvp(os.P_WAIT, "head", ["head", "-n1", sys.argv[2]])' c.asked.test`, "python3"},
		{"a copy", `cp "$(readlink -f /bin/bash)" here; ./here -c 'exec 3<>/dev/tcp/d.asked.test/80'`, "here"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(f.ws, fmt.Sprint("asked", i)) // the program lives until it can read that it was asked about
			if err := unix.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
			fifo, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer fifo.Close()
			var got []connectgate.Program
			a := &asked{allows: func(c connectgate.Connection) bool {
				got = append(got, c.Program)
				fifo.WriteString("asked\n")
				return false
			}}
			r := a.run(t, f, s, c.script+" "+path)
			if len(got) == 0 || !strings.HasPrefix(filepath.Base(got[0].Path), c.program) {
				t.Errorf("programs %+v, want %s; output\n%s", got, c.program, r.output)
			}
		})
	}
}

// Event loops run while a person thinks, and the time limits of programs hold.
func TestHostsWaitAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := newOuterNetwork(t)
	s := startWithTUN(t, f, w.options())
	for _, c := range []struct{ name, script string }{ // $1 is there once a person thinks
		{"python3", `python3 -c '
import asyncio, os, sys
async def main():
    task = asyncio.ensure_future(asyncio.open_connection("a.asked.test", 80))
    while not os.path.exists(sys.argv[1]): await asyncio.sleep(0.01)
    try: await asyncio.wait_for(asyncio.open_connection("b.asked.test", 80), 0.2)
    except asyncio.TimeoutError: print("its own limit")
    print("done" if task.done() else "waits")
    open(sys.argv[2], "w").close()
    await task
    print("open")
asyncio.run(main())'`},
		{"node", `node -e '
const net = require("net"), fs = require("fs")
const timer = setInterval(() => {
	if (!fs.existsSync(process.argv[1])) return
	clearInterval(timer); console.log("its own limit\nwaits"); fs.closeSync(fs.openSync(process.argv[2], "w"))
}, 10)
net.connect(80, "a.asked.test", () => { console.log("open"); process.exit() })'`},
		{"curl", `f() {
	until curl -sS -m 0.3 http://a.asked.test/; [ $? = 28 ] && [ -e "$1" ]; do :; done
	printf 'its own limit\nwaits\n'; : >"$2"; curl -sS http://a.asked.test/ >/dev/null && echo open
}; f`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := exec.LookPath(c.name); err != nil {
				t.Skip(err)
			}
			thinks := filepath.Join(f.ws, "thinks-"+c.name)
			if err := unix.Mkfifo(thinks, 0o600); err != nil {
				t.Fatal(err)
			}
			a := &asked{wait: sync.OnceFunc(func() {
				_ = os.WriteFile(thinks+"-now", nil, 0o644)
				_, _ = os.ReadFile(thinks) // until the program closes it
			})}
			r := a.run(t, f, s, c.script+" "+thinks+"-now "+thinks)
			if !strings.HasSuffix(r.output, "its own limit\nwaits\nopen\n") {
				t.Errorf("output\n%s", r.output)
			}
		})
	}
}
