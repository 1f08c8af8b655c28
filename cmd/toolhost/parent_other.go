//go:build !linux

package main

import (
	"context"
	"os"
)

// parentExited returns a channel that is closed when the process that started this one has died: its client,
// which may leave the input open in some other process. A parent that is the init process tells nothing.
func parentExited(ctx context.Context) <-chan struct{} {
	parent := os.Getppid()
	if parent <= 1 {
		return nil
	}
	return pollParent(ctx, parent)
}
