//go:build !linux

package sandbox

import (
	"fmt"
	"runtime"
)

// ExecGateWorks reports why the programs that commands start cannot be judged; see the Linux version.
func ExecGateWorks(Backend) error { return errNoExecGate }

// ListenExecs is an error on this system; see the Linux version.
func ListenExecs() (listener int, err error) { return -1, errNoExecGate }

// Serve is an error on this system; see the Linux version.
func (*ExecGate) Serve(int) error { return errNoExecGate }

// errNoExecGate is the error of all that judges programs.
var errNoExecGate = fmt.Errorf("sandbox: programs cannot be judged when they start: %s has no means for it",
	runtime.GOOS)
