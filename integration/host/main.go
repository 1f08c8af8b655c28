// Package host builds the toolhost binary, starts hosts and connects clients to them, for the tests of the packages
// beside it.
package host

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/lockedfile"
	"github.com/toolhost/toolhost/integration/testenv"
)

// Module is the path of this module, with a slash.
const Module = "github.com/toolhost/toolhost/"

// Binary is the path of the toolhost binary under test. Each test process has a path of its own, so that the hosts of
// one process can be told from those of another.
var Binary string

var raceHost = flag.Bool("race-host", false, "build the binary with the race detector, which needs cgo, and fail if it finds a race in any host")

// The reaper removes the directories that it was told of when the test process ends, however it ends.
var (
	startReaper = func(binary string) (wait func()) { return func() {} }
	reap        = func(dir string) {}
)

// TempDir is t.TempDir() of a test process that may be killed.
func TempDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	reap(filepath.Dir(dir)) // with the other directories of the test
	return dir
}

// BusyDir is TempDir for programs that may still write there when the test ends.
func BusyDir(t testing.TB) string {
	t.Helper()
	dir := TempDir(t)
	t.Cleanup(func() {
		Eventually(t, func() string {
			if err := os.RemoveAll(dir); err != nil {
				return err.Error()
			}
			return ""
		})
	})
	return dir
}

// Main builds the binary, runs the tests of a package and exits. With -short, and without -run, it runs the plain ones
// alone, which start no host, and builds nothing.
func Main(m *testing.M, plain ...string) {
	testenv.Plain()
	// Tests wait for hosts most of the time, so more of them run in parallel than there are processors.
	flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0)))
	flag.Parse()
	if testing.Short() && flag.Lookup("test.run").Value.String() == "" {
		flag.Set("test.run", "^("+strings.Join(plain, "|")+")$")
		os.Exit(m.Run())
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "toolhost-integration-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	Binary = filepath.Join(dir, "toolhost")
	defer startReaper(Binary)()
	defer os.RemoveAll(dir)
	reap(dir)
	races := filepath.Join(dir, "races")
	err = os.Chmod(dir, 0o755) // some hosts run as another user
	if err == nil && *raceHost {
		err = logRaces(races)
	}
	if err == nil {
		err = build(Binary)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return max(m.Run(), reportRaces(races))
}

// build puts the binary at path. The packages of the tests share one file in the user's cache directory: go build
// leaves it as it is if it is up to date.
func build(path string) error {
	if err := readSources(); err != nil {
		return err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	shared, cgo, args := filepath.Join(cache, "toolhost-test", "toolhost"), "0", []string{"build", "-buildvcs=false"}
	if *raceHost {
		shared, cgo, args = shared+"-race", "1", []string{"build", "-buildvcs=false", "-race"}
	}
	if err := os.MkdirAll(filepath.Dir(shared), 0o755); err != nil {
		return err
	}
	unlock, err := lockedfile.MutexAt(shared + ".lock").Lock() // packages are tested at the same time
	if err != nil {
		return err
	}
	defer unlock()
	cmd := exec.Command("go", append(args, "-o", shared, Module+"cmd/toolhost")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the binary: %w\n%s", err, out)
	}
	if os.Link(shared, path) == nil { // go build replaces the file and does not write into it
		return nil
	}
	raw, err := os.ReadFile(shared)
	if err != nil {
		return err
	}
	return os.WriteFile(path, raw, 0o755)
}

// readSources reads the directories of the product, so that go test does not answer from its cache when a file in one
// of them changed.
func readSources() error {
	top, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return err
	}
	for _, room := range []string{"cmd", "mcpserver", "builtin", "guard", "readstate", "resultstore"} {
		err := filepath.WalkDir(filepath.Join(top, room), func(_ string, _ fs.DirEntry, err error) error { return err })
		if err != nil {
			return err
		}
	}
	_, err = os.Stat(filepath.Join(top, "go.mod"))
	return err
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

// reportRaces prints the files in dir and returns the exit code that the tests have for them.
func reportRaces(dir string) int {
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, file := range files {
		raw, err := os.ReadFile(file)
		fmt.Fprintf(os.Stderr, "a race in a host, %s: %v\n%s\n", filepath.Base(file), err, raw)
	}
	return min(len(files), 1)
}
