//go:build !linux

package cell

// born returns 0: no other system has a sandbox that covers files while it runs.
func born(string) int64 { return 0 }
