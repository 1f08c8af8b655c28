//go:build !linux && !darwin

package sandbox

import (
	"context"
	"runtime"
)

// platformBackends is empty: this system has nothing that keeps a program from
// files. Windows has job objects, which end a tree of processes, and no more.
var platformBackends, optionalBackends []Backend

func platformReport() Report {
	return Report{Why: []string{"There is no sandbox for " + runtime.GOOS + "."},
		Remedy: "Run the server on Linux, or in WSL 2, to have commands contained"}
}

func start(context.Context, Backend, Policy, Options) (*Sandbox, error) {
	return nil, &unavailableError{cause: "there is no sandbox for " + runtime.GOOS}
}

// Prepare does nothing on this system; see the Linux version.
func (Options) Prepare() {}

// recalled and remember do nothing on this system; see the Linux version.
func recalled() (r Report, known bool) { return r, false }

func remember(Report) {}
