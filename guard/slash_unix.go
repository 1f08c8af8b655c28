//go:build unix

package guard

// slashed returns an absolute path in the form rules are compared in.
func slashed(name string) string { return name }

// unslashed is the way back.
func unslashed(name string) string { return name }

// isVolume reports whether an absolute path is that of a volume. Systems with one
// tree have none.
func isVolume(string) bool { return false }

// volumePattern is for systems with volumes.
func volumePattern(text string) string { return text }
