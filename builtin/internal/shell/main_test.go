package shell

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	RunSupervisor(os.Args)
	runAsServer()
	goleak.VerifyTestMain(m)
}

// newRunner returns a runner that is closed at the end of the test.
func newRunner(tb testing.TB, cfg Config) *Runner {
	tb.Helper()
	r, err := New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := r.Close(); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return r
}

// run runs a command that must start.
func run(tb testing.TB, r *Runner, c Command) *Result {
	tb.Helper()
	if c.Dir == "" {
		c.Dir = "/"
	}
	res, err := r.Run(tb.Context(), c)
	if err != nil {
		tb.Fatalf("%.80q: %v", c.Text, err)
	}
	return res
}

// spillTo returns a Spill into a temporary directory.
func spillTo(tb testing.TB) Spill {
	dir := tb.TempDir()
	return func() (io.WriteCloser, string, error) {
		f, err := os.CreateTemp(dir, "spill")
		if err != nil {
			return nil, "", err
		}
		return f, f.Name(), nil
	}
}

// blockedInRead reports whether a shell has come as far as waiting for its script.
func blockedInRead(s *shell) bool {
	p, ok := s.proc.(*supervised)
	if !ok {
		return true
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(p.leader) + "/wchan")
	return err != nil || strings.Contains(string(b), "pipe_read")
}

// withTag returns the ids of the processes that have tag among their arguments.
func withTag(tb testing.TB, tag string) []int {
	tb.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		tb.Fatal(err)
	}
	var pids []int
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err == nil && strings.Contains("\x00"+string(b), "\x00"+tag+"\x00") {
			pid, _ := strconv.Atoi(strings.Split(f, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}
