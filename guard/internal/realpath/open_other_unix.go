//go:build unix && !linux

package realpath

import "golang.org/x/sys/unix"

// bareFlags opens a file to look at it. Systems without O_PATH need the right to
// read it.
const bareFlags = unix.O_RDONLY | unix.O_NONBLOCK

// dirFlags opens a directory to look names up in it.
const dirFlags = unix.O_RDONLY | unix.O_DIRECTORY

// openNoLinks opens an absolute path that has no symbolic link in it.
func openNoLinks(path string, flag int) (int, error) { return openByElement(path, flag) }

// withoutLinks returns false, so that every path is walked.
func withoutLinks(string) (Resolved, bool) { return Resolved{}, false }
