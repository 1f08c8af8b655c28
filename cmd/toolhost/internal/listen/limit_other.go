//go:build !unix

package listen

import "math"

// maxDescriptors returns how many descriptors the process may have open. This system cannot be asked for a limit.
func maxDescriptors() int { return math.MaxInt32 }
