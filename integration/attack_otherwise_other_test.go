//go:build unix && !linux

package integration

import "testing"

// containedOtherwise are attacks on commands that something else than the first choice contains.
var containedOtherwise []func(*testing.T)
