//go:build !linux

package testenv

import "testing"

// NeedsNamespaces skips a test, because this system has no namespaces.
func NeedsNamespaces(t testing.TB) {
	t.Helper()
	t.Skip("this system has no namespaces")
}
