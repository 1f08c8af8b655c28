//go:build unix

package document

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxData bounds the memory of a worker in addition to that of PDFium: compiling takes
// 300 MB.
const maxData = 1 << 30

// limitProcess has the system end this process when it runs or grows for too
// long, also when whichever process started it is gone. A worker that is killed leaves no
// image of its memory, which holds the file.
func limitProcess(seconds int) error {
	for resource, limit := range map[int]uint64{
		unix.RLIMIT_CPU:  4 * uint64(seconds), // of all threads together
		unix.RLIMIT_DATA: maxData,
		unix.RLIMIT_CORE: 0,
	} {
		var old unix.Rlimit
		if err := unix.Getrlimit(resource, &old); err != nil {
			return err
		}
		limit = min(limit, uint64(old.Max))
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return err
		}
	}
	return nil
}

// private reports, as an error, that others than the owner can write to a directory.
func private(dir string, info fs.FileInfo) error {
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user, and a cache of programs there is not used", dir)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s is open to other users, and a cache of programs there is not used: chmod 700 it", dir)
	}
	return nil
}
