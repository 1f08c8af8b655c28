//go:build !linux

package builtin

// readAsCommand is for Linux.
func readAsCommand([]string) bool { return false }
