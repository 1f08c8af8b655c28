//go:build !linux

package privatedir

import (
	"errors"
	"os"
)

// mounts reports whether a sandbox of this system can mount places.
const mounts = false

func lockFile(string, bool) (*os.File, error) { return nil, errors.ErrUnsupported }
