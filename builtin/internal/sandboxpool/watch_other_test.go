//go:build !linux

package sandboxpool

// readAsCommand is for Linux.
func readAsCommand([]string) bool { return false }
