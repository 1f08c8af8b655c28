// Package parent tells when the process that started this one has died.
package parent

import (
	"context"
	"os"
	"time"
)

// interval is how often it is looked whether the parent still lives, where nothing tells.
const interval = time.Second

// poll closes its channel when the process has another parent than it had.
func poll(ctx context.Context, parent int) <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		tick := time.NewTicker(interval)
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
