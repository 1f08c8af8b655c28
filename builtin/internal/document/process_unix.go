//go:build unix

package document

import (
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
