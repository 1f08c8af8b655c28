//go:build unix

package shell

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/shell/supervise"
	"github.com/toolhost/toolhost/integration/testenv"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	runAsServer()
	testenv.Plain()
	goleak.VerifyTestMain(m)
}

// newRunner returns a runner that is closed at the end of the test.
func newRunner(tb testing.TB, cfg Config) *Runner {
	tb.Helper()
	r := New(cfg)
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

// serverVariable makes the test binary a server that runs the command in it.
const serverVariable = "SHELL_TEST_SERVER"

func runAsServer() {
	text := os.Getenv(serverVariable)
	if text == "" {
		return
	}
	os.Unsetenv(serverVariable)
	report := func(s string) { fmt.Println(s) }
	if harden, ok := os.LookupEnv("SHELL_TEST_HARDEN"); ok {
		report = nil // only the result is of interest
		if harden != "" {
			if err := supervise.Harden(); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		}
	}
	r := New(Config{InheritPath: true})
	res, err := r.Run(context.Background(), Command{Text: text, Dir: "/", Timeout: time.Minute, Output: report})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Print(res.Text)
	r.Close()
	os.Exit(0)
}

// newTag returns an argument for sleep that no other process has.
func newTag() string { return strconv.Itoa(1_000_000_000 + rand.IntN(1_000_000_000)) }

// tree is a command that leaves everything behind that is hard to end: children
// in the background, in a session of their own, forked twice, ignoring signals,
// stopped, without our variables, and one that keeps starting others. It says
// "ready" when they run.
func tree(tag string) string {
	return strings.ReplaceAll(`
		sleep TAG &
		setsid sleep TAG &
		(setsid bash -c 'trap "" TERM HUP INT; (setsid sleep TAG &); exit 0' &)
		bash -c 'trap "" TERM HUP INT QUIT USR1; while :; do sleep TAG; done' &
		env -i /usr/bin/setsid -f sleep TAG
		nohup sleep TAG >/dev/null 2>&1 & disown
		sleep TAG & kill -STOP $!
		(trap "" TERM; while :; do (sleep TAG &); /bin/sleep 0.01; done) >/dev/null 2>&1 &
		while [ $(grep -lz '^TAG$' /proc/[0-9]*/cmdline 2>/dev/null | wc -l) -lt 8 ]; do :; done
		echo ready
	`, "TAG", tag)
}

// checkGone fails the test if processes with the tag are left. The supervisor has
// ended them before it says so, so there is nothing to wait for.
func checkGone(t *testing.T, tag string) {
	t.Helper()
	for _, pid := range withTag(t, tag) {
		stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		t.Errorf("survivor: %s", stat)
		syscall.Kill(pid, syscall.SIGKILL)
	}
}
