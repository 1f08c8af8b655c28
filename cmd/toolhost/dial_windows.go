package main

import "syscall"

// detached returns the attributes of a process that outlives this one and its console.
func detached() *syscall.SysProcAttr {
	const createNewProcessGroup, detachedProcess = 0x200, 0x8
	return &syscall.SysProcAttr{CreationFlags: createNewProcessGroup | detachedProcess}
}
