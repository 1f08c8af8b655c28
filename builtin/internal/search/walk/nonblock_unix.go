//go:build unix && !linux

package walk

import "syscall"

// nonblock keeps the open of a FIFO that was swapped in from waiting.
const nonblock = syscall.O_NONBLOCK
