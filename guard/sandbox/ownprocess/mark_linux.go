// Package ownprocess changes the process that calls it: it marks it as one of a command, and gives back its memory.
//
// Its Go API is not stable.
package ownprocess

import "golang.org/x/sys/unix"

// MarkCommand marks this process, and all that descend from it, as those of a call; see [InCommand].
//
// The mark is a hard limit on file locks. Kernels since 2.4.25 do not apply that limit, and processes inherit it
// through fork, exec, setsid and namespaces. Only CAP_SYS_RESOURCE of the machine's own user namespace can raise it.
func MarkCommand() { Lower(unix.RLIMIT_LOCKS, func(most uint64) uint64 { return most / 2 }) }

// InCommand reports whether this process descends from one that was marked. It does not recognize a process that
// another service of the machine started for a command, or a process that root has unmarked.
func InCommand() bool {
	var now unix.Rlimit
	return unix.Getrlimit(unix.RLIMIT_LOCKS, &now) == nil && now.Max != unix.RLIM_INFINITY
}

// Lower lowers a hard limit. It cannot be raised again.
func Lower(resource int, to func(most uint64) uint64) {
	var now unix.Rlimit
	if unix.Getrlimit(resource, &now) != nil {
		return
	}
	most := min(now.Max, to(now.Max))
	unix.Setrlimit(resource, &unix.Rlimit{Cur: min(now.Cur, most), Max: most})
}
