//go:build unix

package guard

import (
	"os"
	"os/user"
	"slices"
	"strconv"
	"syscall"

	"github.com/toolhost/toolhost/guard/internal/pathname"
)

// ownerHomes returns the home directories of the users who own roots, if the host is root's: its commands can read the
// private files of these users, see Writable of a policy in package sandbox.
func ownerHomes(bounds []pathname.Place) (homes []string) {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, b := range bounds {
		info, err := os.Stat(b.Given)
		if err != nil {
			continue
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok || stat.Uid == 0 {
			continue
		}
		owner, err := user.LookupId(strconv.FormatUint(uint64(stat.Uid), 10))
		if err == nil && owner.HomeDir != "" && !slices.Contains(homes, owner.HomeDir) {
			homes = append(homes, owner.HomeDir)
		}
	}
	return homes
}
