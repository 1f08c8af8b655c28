//go:build unix && !linux

package hook

import "syscall"

// leaderAttr makes a process lead a session. These systems have no signal for the
// death of the parent.
func leaderAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
