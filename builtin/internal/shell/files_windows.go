package shell

import "os"

// rootDir is where shells wait for their script, and where the login shell runs.
const rootDir = `C:\`

// On Windows only three descriptors can be passed on, so the script is sent over standard input, and the shell cannot
// report its working directory.
const (
	scriptFD   = "0"
	reportFD   = "18"
	openReport = `exec 18>/dev/null; `
	endScript  = `exec </dev/null; `
	hideScript = ""
	lastWord   = ""
)

const plainFiles = 0 // there are no Finishers

func childFiles(_, out, script, _ *os.File) []*os.File { return []*os.File{script, out, out} }

// readNow reads what a pipe holds. No other process has the write end on this system.
func readNow(f *os.File, buf []byte) int {
	n, _ := f.Read(buf)
	return n
}

// rootOnly returns false: on Windows bash is looked for in fixed places only.
func rootOnly(string) bool { return false }
