//go:build !windows && !darwin

package settings

import "syscall"

const claudeManagedName = "claude-code"

func managedBase() string { return "/etc" }

// openNonblock keeps the opening of a pipe from waiting for a writer.
const openNonblock = syscall.O_NONBLOCK
