//go:build !linux && !darwin

package readstate

import (
	"io/fs"
	"time"
)

// changeTime returns the zero time: the platform does not report it.
func changeTime(fs.FileInfo) time.Time { return time.Time{} }
