package main

import (
	"context"
	"os"

	"golang.org/x/sys/unix"
)

// parentExited returns a channel that is closed when the parent of this process has died. The parent is the client;
// another process may still hold the input open. A parent that is the init process is ignored.
func parentExited(ctx context.Context) <-chan struct{} {
	parent := os.Getppid()
	if parent <= 1 {
		return nil
	}
	fd, err := unix.PidfdOpen(parent, unix.PIDFD_NONBLOCK)
	if err != nil || os.Getppid() != parent { // it may have died just now
		return pollParent(ctx, parent)
	}
	gone := make(chan struct{})
	go func() {
		defer unix.Close(fd)
		for ctx.Err() == nil {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}},
				int(parentPollInterval.Milliseconds()))
			if n > 0 {
				close(gone)
				return
			}
			if err != nil && err != unix.EINTR {
				return
			}
		}
	}()
	return gone
}
