//go:build !linux

package walk

import "errors"

// Mounts does not exist here.
type Mounts struct{}

// OpenMounts fails.
func OpenMounts(string) (*Mounts, error) { return nil, errors.ErrUnsupported }

// Close does nothing.
func (*Mounts) Close() error { return nil }

// Changed reports that anything may have changed.
func (*Mounts) Changed() bool { return true }
