//go:build !unix

package listen

import "math"

// maxDescriptors is how many the process may have open: there is no bound that could be asked for.
func maxDescriptors() int { return math.MaxInt32 }
