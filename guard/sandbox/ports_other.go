//go:build !linux

package sandbox

// takenPorts is not needed here: no sandbox of this system has a network of its own.
func takenPorts() map[int]bool { return nil }
