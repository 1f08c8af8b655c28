//go:build unix

package host

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// reaping is what the shell does that outlives the tests: it reads directories until their end, kills what runs of the
// binary, which is its first argument, and makes sure that nothing is left mounted in a directory, and nothing at all.
// Signals to the whole of a run do not reach it.
const reaping = `binary=${1:?}; shift
while read -r dir; do set -- "$@" "$dir"; done
ls -l /proc/[0-9]*/exe | while read -r line; do
	case $line in *" -> $binary" | *" -> $binary (deleted)") p=${line#*/proc/}; kill -9 "${p%%/exe*}";; esac
done
umount -l "$@"
rm -rf -- "$@"`

// reaper starts a shell that removes the directories given to reap when the test process has ended, also if it was
// killed. wait waits for the end of the shell.
func reaper(binary string) (wait func()) {
	shell := exec.Command("sh", "-c", reaping, "reaping", binary)
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := shell.StdinPipe()
	if err == nil {
		err = shell.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "what a killed run leaves will stay:", err)
		return func() {}
	}
	reap = func(dir string) {
		if filepath.IsAbs(dir) && filepath.Clean(dir) != filepath.Clean(os.TempDir()) {
			fmt.Fprintln(in, dir)
		}
	}
	return func() {
		in.Close()
		_ = shell.Wait() // what it finds gone, as nearly always, it complains of
	}
}

func init() { startReaper = reaper }
