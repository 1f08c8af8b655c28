//go:build unix

package pathname

// Slashed returns an absolute path in the form rules are compared in.
func Slashed(name string) string { return name }

// Native returns the system's form of a path that Slashed returned.
func Native(name string) string { return name }

// IsVolume reports whether an absolute path is that of a volume. Systems with one
// tree have none.
func IsVolume(string) bool { return false }

// VolumePattern returns text unchanged: this system has no volumes.
func VolumePattern(text string) string { return text }
