//go:build slow

package attack

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/integration/host"
)

// openTerminal opens a terminal: the side that plays the user's window, and that of programs.
func openTerminal(t *testing.T) (window, programs *os.File) {
	t.Helper()
	window, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	host.Must(t, err)
	host.Must(t, unix.IoctlSetPointerInt(int(window.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(window.Fd()), unix.TIOCGPTN)
	host.Must(t, err)
	programs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	host.Must(t, err)
	t.Cleanup(func() { window.Close(); programs.Close() })
	return window, programs
}

// What a terminal answers comes when the client has ended: the answer to the question of toolhost run is the latest.
const (
	question = "\x1b7\x1b[?6l" // how it begins
	cursor   = "\x1b[6n"       // of a client, which is answered at once
	// typed is what a terminal types for ENQ, and for reports of a title that the client has set.
	typed = "touch breached\r"
)

// whole matches the question of toolhost run, and place where it moves the cursor before it asks.
var whole, place = regexp.MustCompile(`^\x1b7\x1b\[\?6l(\x1b\[\d+;\d+H\x1b\[6n)+\x1b8`), regexp.MustCompile(`(\x1b\[\d+;\d+)H`)

// TestAttackTerminal has the client of toolhost run make the user's terminal type a command into the user's shell.
func TestAttackTerminal(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	run := host.Binary + " run --root . -- "
	const then = `; echo EN""DED; read -r line; echo "read=$line="`
	for _, tt := range []struct {
		name, line, want string // short: it is part of the path of a socket
		prompt           bool   // the terminal answers before the client ends
	}{
		{"ends", run + `sh -c 'printf "\005\033[21t"'` + then, "read=by the person=", false},
		{"killed", run + `sh -c 'printf "\005"; kill -9 $$'` + then, "read=by the person=", false},
		{"torn", run + `sh -c 'printf "\005\033P"'` + then, "read=by the person=", false},
		{"asks", run + `sh -c 'printf "\033[5n\033[3;4H\033[6n\005"'` + then, "read=by the person=", false},
		{"mouse", run + `sh -c 'printf "\033[?1003h"'` + then, ";1003;", false},
		{"stops", run + `bash -c 'printf "\005\033[6n"; read -r x; kill -STOP $$; exit 7'` + then + `; fg; echo "status=$?"`, "status=7", false},
		{"full", run + `python3 -c "import fcntl, os, signal, struct, termios, tty
tty.setraw(0)
os.write(1, b'\5' * 6000)
while struct.unpack('i', fcntl.ioctl(0, termios.FIONREAD, b'0000'))[0] < 4000: pass
os.kill(os.getpid(), signal.SIGSTOP)
os._exit(7)"` + then + `; fg; echo "status=$?"`, "status=7", true},
		{"inject", run + `python3 -c "import fcntl, os
for fd in [0, 1, 2, 3, 4, 5, os.open('/dev/tty', os.O_RDWR)]:
    for req in [0x5412, 0x541c]:
        try:
            for c in b'touch breached\n': fcntl.ioctl(fd, req, bytes([c]))
            print('in', 'jected')
        except OSError as e: print('held', fd, e.errno)
print(*sorted(os.listdir('/proc/self/fd')), 'fds')"` + then, "0 1 2 3 4 fds", false}, // 3 is its own /dev/tty, 4 the directory
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			window, programs := openTerminal(t)
			shell := exec.Command("bash", "--norc", "--noprofile", "-m", "-c", tt.line+"\necho over")
			shell.Dir, shell.Env = w.ws, append(host.CleanEnv(w.home), "TERM=xterm-256color")
			shell.Stdin, shell.Stdout, shell.Stderr = programs, programs, programs
			shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			host.Must(t, shell.Start())
			host.Must(t, programs.Close()) // the last program that has it ends the reading
			shown := playTerminal(window, !tt.prompt)
			if err := shell.Wait(); err != nil {
				t.Errorf("the shell: %v", err)
			}
			if !strings.Contains(shown, tt.want) || strings.Contains(shown, "read=touch") ||
				strings.Contains(shown, "injected") {
				t.Errorf("the shell shows %q, want %q", shown, tt.want)
			}
			if _, err := os.Lstat(filepath.Join(w.ws, "breached")); err == nil {
				t.Errorf("the terminal typed a command into the shell: %q", shown)
			}
		})
	}
}

// playTerminal answers in order: at once, or late, when toolhost run asks or has ended. Then a person types a line. It returns all
// that was shown.
func playTerminal(window *os.File, late bool) string {
	var shown []byte
	seen := 0 // of shown
	next := func(what string) bool {
		before, _, _ := bytes.Cut(shown[seen:], []byte(question))
		i := bytes.Index(before, []byte(what))
		if i >= 0 {
			seen += i + len(what)
		}
		return i >= 0
	}
	answer := func() (reply string) {
		start := max(0, bytes.Index(shown[seen:], []byte(question)))
		asked := whole.Find(shown[seen+start:])
		for _, at := range place.FindAllSubmatch(asked, -1) {
			reply += string(at[1]) + "R"
		}
		if asked != nil {
			seen += start + len(asked)
		}
		return reply
	}
	for buf := make([]byte, 4096); ; {
		n, err := window.Read(buf)
		if err != nil {
			return string(shown)
		}
		shown = append(shown, buf[:n]...)
		if next(cursor) {
			_, _ = window.WriteString("\x1b[1;1R\r")
		}
		reply := answer()
		if next("ENDED") {
			reply += "by the person\r"
		}
		if asked := bytes.Count(shown[:], []byte("\x05")); asked > 0 && (reply != "" || !late) {
			reply = strings.Repeat(typed, asked) + reply
			shown = bytes.ReplaceAll(shown, []byte("\x05"), nil)
			seen = max(0, seen-asked)
		}
		_, _ = window.WriteString(reply) // it fails when the shell has ended, as the next read does
	}
}
