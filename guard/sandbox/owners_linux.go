package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	maxOwners       = 64   // users, and groups: user_namespaces(7) allows 340 lines in a map
	maxOwnerEntries = 4096 // entries of one writable directory whose owners are looked at
)

// ownerPowers are the capabilities of root's commands over files of the owners of its workspace. As in every user
// namespace, they count only for files whose user and group have a number in it.
const ownerPowers = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER

// owners are the users and groups that root's commands see under their own numbers, and over whose files they have
// root's powers.
type owners struct{ users, groups []int }

// none reports whether there is no user or group but the host's own.
func (o owners) none() bool { return len(o.users)+len(o.groups) == 0 }

// findOwners returns the owners of the writable directories of pl and of their entries, other than root. A container
// often runs as root in a directory of the person's. It returns none unless this process is root and may give numbers
// to other users. The owners of all files are not wanted: commands could then read the private files of every user.
func findOwners(pl *plan) owners {
	var o owners
	const needed = ownerPowers | 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_SETFCAP
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if os.Geteuid() != 0 || os.Getegid() != 0 {
		return o
	}
	if unix.Capget(&header, &data[0]) != nil || data[0].Effective&needed != needed {
		return o
	}
	for _, t := range pl.writable {
		o.add(t.path)
		dir, err := os.Open(t.path)
		if err != nil {
			continue
		}
		names, _ := dir.Readdirnames(maxOwnerEntries)
		dir.Close()
		for _, name := range names {
			o.add(filepath.Join(t.path, name))
		}
	}
	return o
}

func (o *owners) add(path string) {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return
	}
	for _, id := range []struct {
		list   *[]int
		number uint32
	}{{&o.users, st.Uid}, {&o.groups, st.Gid}} {
		if number := int(id.number); number != 0 && len(*id.list) < maxOwners && !slices.Contains(*id.list, number) {
			*id.list = append(*id.list, number)
		}
	}
}

// mappings gives each number, and own, itself.
func mappings(own int, others []int) []syscall.SysProcIDMap {
	maps := []syscall.SysProcIDMap{{ContainerID: own, HostID: own, Size: 1}}
	for _, id := range others {
		maps = append(maps, syscall.SysProcIDMap{ContainerID: id, HostID: id, Size: 1})
	}
	return maps
}
