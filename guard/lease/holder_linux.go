package lease

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// holder returns the name of the process that holds a lease on a file. It is "" if the process is not known, such as
// one in another container.
func holder(path string) string {
	var st syscall.Stat_t
	if syscall.Lstat(path, &st) != nil {
		return ""
	}
	locks, _ := os.ReadFile("/proc/locks")
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(uint64(st.Dev)), unix.Minor(uint64(st.Dev)), st.Ino)
	for line := range strings.Lines(string(locks)) {
		fields := strings.Fields(line) // 1: LEASE ACTIVE READ 4711 08:01:1234 0 EOF
		if len(fields) < 6 || fields[1] != "LEASE" || fields[5] != file || fields[4] == "0" || fields[4] == "-1" {
			continue
		}
		name, _ := os.ReadFile("/proc/" + fields[4] + "/comm")
		return fmt.Sprintf("the process %s (%q)", fields[4], strings.TrimSpace(string(name)))
	}
	return ""
}
