//go:build !linux

package realpath

import (
	"io/fs"
	"time"
)

// Of returns false: the change time has no common name on these systems.
func Of(fs.FileInfo) (time.Time, bool) { return time.Time{}, false }
