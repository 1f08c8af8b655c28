package testenv

import (
	"os/exec"
	"syscall"
	"testing"
)

// NeedsNamespaces skips a test where this process cannot make a user namespace, as in many containers, and with -short.
func NeedsNamespaces(t testing.TB) {
	t.Helper()
	NotShort(t, "starts a sandbox")
	cmd := exec.Command("true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS}
	if err := cmd.Run(); err != nil {
		t.Skip("making a user namespace: ", err)
	}
}
