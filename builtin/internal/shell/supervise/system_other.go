//go:build !linux && !darwin && !windows

package supervise

import "errors"

// Run does nothing on this system.
func Run([]string) {}

// Start refuses: on this system nothing is known that would end what a
// command leaves running.
func Start(Spec) (Process, error) {
	return nil, errors.New("commands cannot be run on this system: there is no way to end everything they start")
}
