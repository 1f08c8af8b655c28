//go:build unix

package shell

import (
	"os"
	"syscall"
)

// rootDir is where shells wait for their script, and where the login shell runs.
const rootDir = "/"

// At first the script is read from descriptor 3, and the report written to 4. Both are moved, so that they do not
// collide with commands that use low descriptors (exec 3>&1, flock 9) or let bash choose one (exec {fd}>file, from 10
// on). 18 is within the limits that people set to see what a program does without descriptors. If the limit is lower
// already, it is raised as far as an unprivileged process may.
//
// The script's descriptor is a socket. The shell sends its last word over it, and then waits until it is ended, or
// until the script ends; in the latter case it continues. If it exited at once, the kernel could spend the time of
// its exit on the processor that the reader of the report needs.
const (
	scriptFD   = "17"
	reportFD   = "18"
	openReport = `{ exec 18>&4; } 2>/dev/null || { ulimit -S -n 64 && exec 18>&4; } 2>/dev/null || ` +
		`{ exec >&4; echo "the limit of open files (ulimit -H -n) leaves a shell too few; 32 are enough` + refusal + `"; exit 1; }; exec 4>&- 17<&3 3<&-; `
	endScript  = ""
	hideScript = " 17<&-"
	lastWord   = "{ builtin echo && builtin read -r -u 17; } >&17 || :; "
)

// plainFiles is how many descriptors a shell has open at its last word, if its command has opened and closed none:
// the three standard ones, our two, and the two in which bash saves standard output and error. The last word is
// written in a group command, so that the number is always the same.
const plainFiles = 7

// childFiles returns the files of a shell in the order of their descriptors.
func childFiles(null, out, script, report *os.File) []*os.File {
	return []*os.File{null, out, out, script, report}
}

// readNow reads what a pipe holds at this moment, without waiting for more: the descriptor is non-blocking, and the
// file's deadline is bypassed.
func readNow(f *os.File, buf []byte) int {
	conn, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	n := 0
	conn.Control(func(fd uintptr) { n, err = syscall.Read(int(fd), buf) })
	return max(n, 0)
}

// rootOnly reports whether only root can create a file in a directory.
func rootOnly(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Uid == 0
}
