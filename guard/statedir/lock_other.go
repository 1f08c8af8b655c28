//go:build !unix

package statedir

import "os"

// OpenOwn opens a file of the host.
func OpenOwn(path string, how int) (*os.File, error) { return os.OpenFile(path, how, 0o600) }

// TryLock reports success: one host at a time is assumed here.
func TryLock(*os.File) bool { return true }

// ShareLock does nothing.
func ShareLock(*os.File) error { return nil }

// Unlock does nothing.
func Unlock(*os.File) {}
