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

// adoptOrphans makes this process the parent of those that its children leave. The function that it returns ends them
// all; nothing else may start processes in between.
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
				_ = unix.Kill(pid, unix.SIGKILL) // one that has ended is waited for as well
				_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
			}
			time.Sleep(time.Millisecond)
		}
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	}
}

// orphanPatience bounds the end of what a client left.
const orphanPatience = 5 * time.Second

// children are the processes that this one is the parent of.
func children() (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", os.Getpid())) // the pattern is well formed
	for _, name := range lists {
		raw, _ := os.ReadFile(name) // the thread is gone
		for _, word := range strings.Fields(string(raw)) {
			if pid, err := strconv.Atoi(word); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
