//go:build !linux && !darwin && !windows

package supervise

import "errors"

// Start returns an error: this system has no known way to end everything that a command leaves running.
func Start(Spec) (Process, error) {
	return nil, errors.New("commands cannot be run on this system: there is no way to end everything they start")
}
