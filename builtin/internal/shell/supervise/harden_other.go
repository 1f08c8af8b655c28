//go:build !linux

package supervise

// Harden does nothing on this system: there is no counterpart to PR_SET_DUMPABLE
// that a program can ask for, and Go opens its own descriptors close-on-exec.
func Harden() error { return nil }

// CloseInherited does nothing on this system: descriptors are not inherited
// unless asked for, or cannot be told apart.
func CloseInherited() error { return nil }
