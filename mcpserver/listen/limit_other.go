//go:build !unix

package listen

import "math"

// descriptors is how many the process may have open: there is no bound that could be asked for.
func descriptors() int { return math.MaxInt32 }
