package mcpserver

import (
	"context"
	"os"
	"time"
)

// parentInterval is how often it is looked whether the parent still lives, where nothing tells.
const parentInterval = time.Second

// pollParent closes its channel when the process has another parent than it had.
func pollParent(ctx context.Context, parent int) <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		tick := time.NewTicker(parentInterval)
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
