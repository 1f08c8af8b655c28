package document

// ownProgram returns a path to the running program, even if its file has been replaced.
func ownProgram() (string, error) { return "/proc/self/exe", nil }
