// Package integration builds the binary and speaks MCP to it as a client does.
package integration

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// binary is the path of the toolhost binary under test, built once.
var binary string

var raceHost = flag.Bool("race-host", false, "build the binary with the race detector, which needs cgo, and fail if it finds a race in any host")

// reaper sees to it that the directories which reaped is told of go with the tests, however those end.
var (
	reaper = func(binary string) (ended func()) { return func() {} }
	reaped = func(dir string) {}
)

// tempDir is t.TempDir() of a run that may be killed.
func tempDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	reaped(filepath.Dir(dir)) // with the others of the test
	return dir
}

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "toolhost-integration-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	binary = filepath.Join(dir, "toolhost")
	defer reaper(binary)()
	defer os.RemoveAll(dir)
	reaped(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // some hosts run as another user
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	flag.Parse()
	selectTier()
	build := exec.Command("go", "build", "-o", binary, module+"cmd/toolhost")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if *raceHost {
		build = exec.Command("go", "build", "-race", "-o", binary, module+"cmd/toolhost")
		build.Env = append(os.Environ(), "CGO_ENABLED=1")
		if err := logRaces(filepath.Join(dir, "races")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the binary: %v\n%s", err, out)
		return 1
	}
	return max(m.Run(), tellRaces(filepath.Join(dir, "races")))
}

// logRaces has hosts write the races found in them into files in dir, whose names end in the number of the process.
func logRaces(dir string) error {
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o777); err != nil { // some hosts run as another user
		return err
	}
	return os.Setenv("GORACE", "log_path="+filepath.Join(dir, "race"))
}

// tellRaces prints what is in dir and returns what the tests exit with for it.
func tellRaces(dir string) int {
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, file := range files {
		raw, err := os.ReadFile(file)
		fmt.Fprintf(os.Stderr, "a race in a host, %s: %v\n%s\n", filepath.Base(file), err, raw)
	}
	return min(len(files), 1)
}
