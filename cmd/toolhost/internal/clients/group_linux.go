package clients

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes this process the parent of processes that its children leave. The returned function ends
// all of them; nothing else may start processes in between.
func adoptOrphans() (end func()) {
	if unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != nil {
		return func() {}
	}
	return func() {
		for deadline := time.Now().Add(orphanPatience); time.Now().Before(deadline); {
			left := children()
			if len(left) == 0 {
				break
			}
			for _, pid := range left {
				_ = unix.Kill(pid, unix.SIGKILL) // an ended one is also reaped below
				_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
			}
			time.Sleep(time.Millisecond)
		}
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	}
}

// orphanPatience is how long to wait until the processes that a client has left have ended.
const orphanPatience = 5 * time.Second

// children returns the child processes of this process.
func children() (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", os.Getpid())) // the pattern is well formed
	for _, name := range lists {
		raw, _ := os.ReadFile(name) // fails if the thread has ended
		for _, word := range strings.Fields(string(raw)) {
			if pid, err := strconv.Atoi(word); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
