package supervisor

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/kernel"
	"github.com/toolhost/toolhost/guard/sandbox/internal/landlock"
)

// setUpLandlock prepares the init process of one command.
func (g *initProcess) setUpLandlock() ([]int, error) {
	ignoreSignals()
	pl, err := readPlan()
	if err != nil {
		return nil, err
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("refusing to be traced: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("taking in orphans: %w", err)
	}
	rules, err := landlock.Access(pl, true)
	if err != nil {
		return nil, err
	}
	allowed := []uint32{unix.AF_NETLINK, unix.AF_UNIX} // see confine
	listener := -1
	g.spawn, err = newSpawner(false, func() (err error) {
		// A process that may not drop them for later programs need not: under no_new_privs an exec grants nothing
		// that is not already held.
		if err := dropPowers(0); err != nil && !errors.Is(err, unix.EPERM) {
			return err
		}
		if err := keepOnly(0, 0); err != nil {
			return err
		}
		filter := kernel.FilterRules{Families: allowed, Refused: kernel.SharedIPC[:], Writes: pl.Writes}
		filter.Modes = pl.Writes || kernel.NotifyWorks() == nil
		if pl.Execs {
			filter.Judged = kernel.Execs[:]
		}
		listener, err = confine(rules, filter)
		return err
	})
	if err != nil {
		return nil, err
	}
	return appendListener(nil, listener, pl)
}
