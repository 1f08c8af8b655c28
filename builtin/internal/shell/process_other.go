//go:build !linux && !darwin && !windows

package shell

import "errors"

// RunSupervisor does nothing on this system.
func RunSupervisor([]string) {}

// StartSupervised refuses: on this system nothing is known that would end what a
// command leaves running.
func StartSupervised(Spec) (Process, error) {
	return nil, errors.New("commands cannot be run on this system: there is no way to end everything they start")
}
