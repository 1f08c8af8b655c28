package settings

const claudeManagedName = "ClaudeCode"

// managedBase does not come from %ProgramFiles%: the process that starts this one sets the
// environment, and must not be able to hide the administrator's files.
func managedBase() string { return `C:\Program Files` }

// openNonblock is for pipes in the file system, which Windows does not have.
const openNonblock = 0
