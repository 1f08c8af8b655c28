//go:build !linux && !darwin

package shell

import "os"

// scriptPipe returns the ends of a pipe for the script of a shell.
func scriptPipe() (ours, theirs *os.File, err error) {
	theirs, ours, err = os.Pipe()
	return ours, theirs, err
}

// endOfScript tells a shell that no more follows.
func endOfScript(ours *os.File) error { return ours.Close() }
