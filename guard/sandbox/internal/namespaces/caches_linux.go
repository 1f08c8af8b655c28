package namespaces

import (
	"fmt"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/contract"
	"github.com/toolhost/toolhost/guard/sandbox/internal/place"
)

// caches mounts the overlays of caches, at no place yet. The plan keeps those that the kernel grants: other
// directories stay read-only.
func (v *View) caches() []attachment {
	var list []attachment
	v.plan.Caches = slices.DeleteFunc(v.plan.Caches, func(o contract.Cache) bool {
		fd, err := mountCache(o)
		if err != nil {
			return true
		}
		list = append(list, attachment{o.Lower, fd})
		return false
	})
	return list
}

// mountCache makes the overlay. The kernel accesses both layers with the rights of this process, which has those of
// commands; mounts below the lower directory make it fail.
//
// Nothing is synchronized: the end of a sandbox would wait for the whole disk.
func mountCache(o contract.Cache) (int, error) {
	options := map[string]string{"userxattr": "", "volatile": ""}
	for name, t := range map[string]place.Object{"lowerdir": o.Lower, "upperdir": o.Upper, "workdir": o.Work} {
		fd, err := place.OpenPath(t.Path)
		if err != nil {
			return -1, fmt.Errorf("opening %s: %w", t.Path, err)
		}
		defer unix.Close(fd)
		if err := sameObject(fd, t); err != nil {
			return -1, err
		}
		options[name] = "/proc/self/fd/" + strconv.Itoa(fd) // a path would need escapes
	}
	return newFileSystem("overlay", options, attrOpen)
}
