//go:build unix

package listen

import (
	"math"
	"syscall"
)

// maxDescriptors returns how many descriptors the process may have open.
func maxDescriptors() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil || limit.Cur > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(limit.Cur)
}
