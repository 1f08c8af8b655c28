package memory

import (
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// addressSpace returns RLIMIT_AS.
func addressSpace() limit {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &r); err != nil || r.Cur > math.MaxInt64 {
		return limit{}
	}
	return limit{int64(r.Cur), "the limit on its address space (RLIMIT_AS)"}
}

// unlimited is from where on a limit of version 1 is none: it is then the largest multiple of a page.
const unlimited = 1 << 60

// controlGroup returns the smallest memory limit of this process's control group and those above it, in version 1 or
// 2 (cgroups(7)). A path that is not mounted, as in a container that sees its own group as the root, is looked for at
// the root.
func controlGroup(root fs.FS) (least limit) {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return limit{}
	}
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 {
			continue
		}
		mounts, file := []string{"sys/fs/cgroup", "sys/fs/cgroup/unified"}, "memory.max"
		if parts[1] != "" {
			if !strings.Contains(","+parts[1]+",", ",memory,") {
				continue
			}
			mounts, file = []string{"sys/fs/cgroup/memory"}, "memory.limit_in_bytes"
		}
		for _, mount := range mounts {
			for dir := path.Clean("/" + parts[2]); ; dir = path.Dir(dir) {
				raw, err := fs.ReadFile(root, path.Join(mount, dir, file))
				n, bad := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
				if err == nil && bad == nil && n < unlimited {
					least = least.least(limit{n, file + " of its control group"})
				}
				if dir == "/" {
					break
				}
			}
		}
	}
	return least
}
