package main

import (
	"context"
	"os"
	"time"
)

// parentPollInterval is the interval at which the parent is looked for on systems that do not report its end.
const parentPollInterval = time.Second

// pollParent returns a channel that is closed when the process has another parent than it had.
func pollParent(ctx context.Context, parent int) <-chan struct{} {
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
