package main

import (
	"context"
	"os"
	"time"
)

// parentPollInterval is how often it is looked whether the parent still lives, where nothing tells.
const parentPollInterval = time.Second

// pollParent closes its channel when the process has another parent than it had.
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
