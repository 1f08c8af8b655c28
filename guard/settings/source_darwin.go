package settings

import "syscall"

const claudeManagedName = "ClaudeCode"

func managedBase() string { return "/Library/Application Support" }

// openNonblock keeps the opening of a pipe from waiting for a writer.
const openNonblock = syscall.O_NONBLOCK
