//go:build !linux

package sandbox

import (
	"fmt"
	"runtime"
)

// Terminal fails: only sandboxes of Linux have terminals.
func (*Sandbox) Terminal() (*Terminal, error) {
	return nil, fmt.Errorf("sandbox: there are no terminals on %s", runtime.GOOS)
}
