package main

import (
	"context"
	"os"
	"time"
)

// parentPollInterval is the interval at which the parent is looked for. Few systems report its end.
const parentPollInterval = time.Second

// parentExited returns a channel that is closed when the parent of this process has died. The parent is the client;
// another process may still hold the input open. A parent that is the init process is ignored.
func parentExited(ctx context.Context) <-chan struct{} {
	parent := os.Getppid()
	if parent <= 1 {
		return nil
	}
	gone := make(chan struct{})
	go func() {
		tick := time.NewTicker(parentPollInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if os.Getppid() != parent {
					close(gone)
					return
				}
			}
		}
	}()
	return gone
}
