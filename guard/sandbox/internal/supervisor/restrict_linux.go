package supervisor

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/contract"
	"github.com/toolhost/toolhost/guard/sandbox/internal/kernel"
	"github.com/toolhost/toolhost/guard/sandbox/internal/landlock"
)

// Bits of capabilities(7), absent from the library.
const (
	secbitNoRoot           = 1 << 0
	secbitNoSetuidFixup    = 1 << 2
	secbitKeepCapsLocked   = 1 << 5
	secbitNoAmbientRaise   = 1 << 6
	secbitLocked           = secbitNoRoot<<1 | secbitNoSetuidFixup<<1 | secbitKeepCapsLocked | secbitNoAmbientRaise<<1
	commandSecurebits      = secbitNoRoot | secbitNoSetuidFixup | secbitNoAmbientRaise | secbitLocked
	lastCapabilityPossible = 63
)

// restrictCommands takes from the calling thread what commands shall not have, and
// returns what confine does. It keeps one capability, which an exec takes away: the right
// to make the UTS namespace by which the processes of a command are known.
func restrictCommands(rules *landlock.Ruleset, pl *contract.Plan) (listener int, err error) {
	var powers uint32
	if pl.Owners {
		powers = contract.OwnerPowers
	}
	if err := dropPowers(powers); err != nil {
		return -1, err
	}
	if err := keepOnly(1<<unix.CAP_SYS_ADMIN|powers, powers); err != nil {
		return -1, err
	}
	return confine(rules, commandRules(pl))
}

// commandRules is the filter of commands in namespaces.
func commandRules(pl *contract.Plan) kernel.FilterRules {
	r := kernel.FilterRules{Families: kernel.Families[:], Modes: pl.Judged || pl.Execs || pl.Writes, Writes: pl.Writes}
	if pl.Judged {
		r.Judged = append(r.Judged, unix.SYS_CONNECT)
	}
	if pl.Execs {
		r.Judged = append(r.Judged, kernel.Execs[:]...)
	}
	return r
}

// dropPowers makes sure that no program the calling thread executes will have a
// capability, but for those of the first 32 in kept, which the thread has.
func dropPowers(kept uint32) error {
	for c := uintptr(0); c <= lastCapabilityPossible; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
			if errors.Is(err, unix.EINVAL) && c > unix.CAP_LAST_CAP/2 {
				break // past the last one this kernel knows
			}
			return fmt.Errorf("dropping capability %d: %w", c, err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("dropping ambient capabilities: %w", err)
	}
	for c := range uintptr(32) {
		if kept>>c&1 == 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, c, 0, 0); err != nil {
			return fmt.Errorf("keeping capability %d: %w", c, err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, commandSecurebits, 0, 0, 0); err != nil {
		return fmt.Errorf("taking root's powers: %w", err)
	}
	return nil
}

// confine puts the calling thread under Landlock, unless rules is nil, and a
// system call filter, whose listener it returns, or -1. Where nothing would judge what
// path a Unix socket connects to, there are none but pairs. Where nothing would judge the
// programs that the filter is to have judged, or report changes, that is an error.
func confine(rules *landlock.Ruleset, filter kernel.FilterRules) (listener int, err error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, fmt.Errorf("refusing new privileges: %w", err)
	}
	if rules != nil {
		if err := rules.Restrict(); err != nil {
			return -1, err
		}
		rules.Close()
	}
	needed := filter.Writes || slices.Contains(filter.Judged, unix.SYS_EXECVE)
	if slices.Contains(filter.Judged, unix.SYS_CONNECT) {
		if listener, err := kernel.InstallWithListener(kernel.Filter(filter)); err == nil || needed {
			return listener, err
		}
		filter.Judged, filter.Modes = nil, false
	}
	if rules == nil || landlock.Version() < landlock.UnixSockets {
		filter.Families = slices.DeleteFunc(slices.Clone(filter.Families),
			func(f uint32) bool { return f == unix.AF_UNIX })
	}
	if needed || filter.Modes {
		if listener, err := kernel.InstallWithListener(kernel.Filter(filter)); err == nil || needed {
			return listener, err
		}
		filter.Modes = false
	}
	return -1, kernel.Install(kernel.Filter(filter))
}

// keepOnly leaves the calling thread the capabilities in set, of the first 32,
// and its children those in inherited.
func keepOnly(set, inherited uint32) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{{Permitted: set, Effective: set, Inheritable: inherited}}
	if err := unix.Capset(&header, &data[0]); err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	return nil
}
