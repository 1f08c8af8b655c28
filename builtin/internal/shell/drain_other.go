//go:build !linux

package shell

// drainOutput does nothing: it is needed on Linux only.
func (*shell) drainOutput() {}
