//go:build unix

package document

import (
	"golang.org/x/sys/unix"
)

// maxData bounds the memory of a worker besides that of PDFium itself: compiling takes 300 MB.
const maxData = 1 << 30

// limitProcess makes the system end this process if it runs too long or takes too much memory, even when its parent
// is gone. A killed worker writes no core file, because that would contain the PDF.
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
