package hook

import "syscall"

// leaderAttr makes a process lead a session, and die with the server.
func leaderAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}
