//go:build !linux

package memory

import "io/fs"

// addressSpace returns no limit: it is examined on Linux only.
func addressSpace() limit { return limit{} }

// controlGroup returns no limit: only Linux has control groups.
func controlGroup(fs.FS) limit { return limit{} }
