//go:build unix

package main

import "syscall"

// detached returns the attributes of a process that outlives this one and its session.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
