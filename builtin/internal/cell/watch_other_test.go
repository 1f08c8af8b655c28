//go:build !linux

package cell

// readAsCommand is for Linux.
func readAsCommand([]string) bool { return false }
