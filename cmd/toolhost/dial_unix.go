//go:build unix

package main

import "syscall"

// detached is for a process that outlives this one and its session.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
