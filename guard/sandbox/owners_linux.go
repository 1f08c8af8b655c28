package sandbox

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/contract"
)

// maxOwners bounds the users, and the groups: user_namespaces(7) allows 340 lines in a map.
const maxOwners = 64

// owners are the users and groups that root's commands see under their own numbers, and over whose files they have
// root's powers.
type owners struct{ users, groups []int }

// none reports whether there is no user or group but the host's own.
func (o owners) none() bool { return len(o.users)+len(o.groups) == 0 }

// findOwners returns the owners of the writable directories of pl, other than root. A container often runs as root in a
// directory of the person's. It returns none unless this process is root and may give numbers to other users. The
// owners of the files there are not wanted: commands could read the private files of their users anywhere.
func findOwners(pl *contract.Plan) owners {
	var o owners
	const needed = contract.OwnerPowers | 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_SETFCAP
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if os.Geteuid() != 0 || os.Getegid() != 0 {
		return o
	}
	if unix.Capget(&header, &data[0]) != nil || data[0].Effective&needed != needed {
		return o
	}
	users, groups := numbersIn("/proc/self/uid_map"), numbersIn("/proc/self/gid_map")
	for _, t := range pl.Writable {
		var st unix.Stat_t
		if unix.Lstat(t.Path, &st) != nil {
			continue
		}
		o.users, o.groups = users.add(o.users, st.Uid), groups.add(o.groups, st.Gid)
	}
	return o
}

// numbers are the ranges of user or group ids that exist in the namespace of this process. A range is its first id and
// its length.
type numbers [][2]uint64

func numbersIn(file string) (n numbers) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		var first, outside, count uint64
		if _, err := fmt.Sscan(line, &first, &outside, &count); err == nil {
			n = append(n, [2]uint64{first, count})
		}
	}
	return n
}

// add adds the owner of a directory to a list, unless it is root, in the list already, or shown in place of one that
// does not exist here.
func (n numbers) add(list []int, owner uint32) []int {
	exists := slices.ContainsFunc(n, func(r [2]uint64) bool { return uint64(owner)-r[0] < r[1] })
	if owner == 0 || !exists || len(list) == maxOwners || slices.Contains(list, int(owner)) {
		return list
	}
	return append(list, int(owner))
}

// mappings gives each number, and own, itself.
func mappings(own int, others []int) []syscall.SysProcIDMap {
	maps := []syscall.SysProcIDMap{{ContainerID: own, HostID: own, Size: 1}}
	for _, id := range others {
		maps = append(maps, syscall.SysProcIDMap{ContainerID: id, HostID: id, Size: 1})
	}
	return maps
}
