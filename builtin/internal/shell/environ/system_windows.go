package environ

// rootDir is where the login shell runs.
const rootDir = `C:\`

// rootOnly is not known for Windows: bash is looked for in fixed places only.
func rootOnly(string) bool { return false }
