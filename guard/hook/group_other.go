//go:build !unix

package hook

import "errors"

// startGroup refuses: without process groups nothing would end what a command
// leaves running.
func startGroup(Spec) (Process, error) {
	return nil, errors.New("commands of hooks cannot be run on this system without a supervised starter")
}
