//go:build !linux

package main

import (
	"context"
	"os"
)

// parentExited returns a channel that is closed when the parent of this process has died. The parent is the client;
// another process may still hold the input open. A parent that is the init process is ignored.
func parentExited(ctx context.Context) <-chan struct{} {
	parent := os.Getppid()
	if parent <= 1 {
		return nil
	}
	return pollParent(ctx, parent)
}
