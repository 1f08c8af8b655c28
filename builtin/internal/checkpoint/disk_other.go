//go:build !linux

package checkpoint

import (
	"errors"
	"os"
)

// unlink does nothing: an open file cannot lose its name everywhere.
func unlink(*os.File) error { return nil }

func closeUnlinked(f *os.File) error { return errors.Join(f.Close(), os.Remove(f.Name())) }

// punch does nothing: the room is freed with the file.
func punch(*os.File, int64, int64) {}

// hasRoom returns nil: if there is no room, the write fails.
func hasRoom(*os.File, int64) error { return nil }

func lowPriority() {}
