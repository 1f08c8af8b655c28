//go:build unix

package shell

import (
	"errors"
	"os"
	"syscall"
)

// rootDir is where shells wait for their script.
const rootDir = "/"

// The script comes over descriptor 3. The report of the working directory goes to
// 4 at first and is moved out of the way of commands that use low descriptors
// (exec 3>&1, flock 9); 40 is below those that process substitution takes, from
// 63 downwards.
const (
	scriptFD   = "3"
	openReport = `exec 40>&4 4>&-; `
	endScript  = `exec 3<&-; `
)

// childFiles puts the files of a shell in order.
func childFiles(null, out, script, report *os.File) []*os.File {
	return []*os.File{null, out, out, script, report}
}

// readNow reads what a pipe holds at this moment, without waiting for more.
func readNow(f *os.File, buf []byte) int {
	conn, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	total := 0
	// The descriptor does not block, and the deadline of the file is not asked.
	conn.Read(func(fd uintptr) bool {
		if n, err := syscall.Read(int(fd), buf); err == nil {
			total = n
		}
		return true
	})
	return total
}

// rootOnly reports whether nobody but root can put a file into a directory.
func rootOnly(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Uid == 0
}

// setBlocking makes descriptors block. Go's own pipes do not, and programs expect
// it: bash would take an empty script pipe for the end of it, and output would be
// lost.
func setBlocking(files ...*os.File) error {
	for _, f := range files {
		conn, err := f.SyscallConn()
		if err != nil {
			return err
		}
		var failed error
		err = conn.Control(func(fd uintptr) { failed = syscall.SetNonblock(int(fd), false) })
		if err := errors.Join(err, failed); err != nil {
			return err
		}
	}
	return nil
}
