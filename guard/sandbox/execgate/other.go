//go:build !linux

package execgate

import (
	"fmt"
	"runtime"
)

// Works is an error on this system; see the Linux version.
func Works(bool) error { return errNoGate }

// Listen is an error on this system; see the Linux version.
func Listen() (listener int, err error) { return -1, errNoGate }

// Serve is an error on this system; see the Linux version.
func (*Gate) Serve(int) error { return errNoGate }

// errNoGate is the error of everything here: programs cannot be judged on this system.
var errNoGate = fmt.Errorf("sandbox: programs cannot be judged when they start: %s has no means for it",
	runtime.GOOS)
