//go:build !unix

package history

const (
	openFlags = 0
	noWatch   = 0
)

// isNotDir is never true: Windows says that the path does not exist.
func isNotDir(error) bool { return false }

// syncDir does nothing: Windows has no call for it.
func syncDir(string) error { return nil }
