package supervisor

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/ownprocess"
)

// oomScore is added to the score by which the kernel chooses the process to kill when memory runs
// out, in thousandths of all memory.
const oomScore = 200

// setChildLimits limits the resources of the user that this process, and all commands that descend from it, can use.
// Errors are ignored: a start must not fail because of them.
func setChildLimits() {
	// The kernel may give a core dump to a program on the host, which runs outside of the
	// sandbox, but not with this limit, see core(5).
	ownprocess.Lower(unix.RLIMIT_CORE, func(uint64) uint64 { return 1 })
	// Queued signals are counted for the user: timers need them.
	ownprocess.Lower(unix.RLIMIT_SIGPENDING, func(most uint64) uint64 { return most / 2 })
	ownprocess.MarkCommand()

	// As long as the process is dumpable, it owns its files here.
	const file = "/proc/self/oom_score_adj"
	text, err := os.ReadFile(file)
	if err != nil {
		return
	}
	if score, err := strconv.Atoi(string(bytes.TrimSpace(text))); err == nil && score < oomScore {
		os.WriteFile(file, []byte(strconv.Itoa(oomScore)), 0)
	}
}

// leaveSome reserves for this process and the host a quarter of what a command (pid 0: the calling
// process) could otherwise use up for the whole user: processes, and descriptors in flight in
// sockets, which the kernel compares with the limit of open files of the
// sender. The next commands receive their files in this way.
func leaveSome(pid int) {
	for _, resource := range []int{unix.RLIMIT_NOFILE, unix.RLIMIT_NPROC} {
		var now unix.Rlimit
		if unix.Prlimit(pid, resource, nil, &now) != nil || now.Max == unix.RLIM_INFINITY {
			continue
		}
		most := now.Max - now.Max/4
		unix.Prlimit(pid, resource, &unix.Rlimit{Cur: min(now.Cur, most), Max: most}, nil)
	}
}
