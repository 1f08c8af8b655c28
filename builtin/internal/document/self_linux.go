package document

// ownProgram is this very program, also when its file was replaced meanwhile.
func ownProgram() (string, error) { return "/proc/self/exe", nil }
