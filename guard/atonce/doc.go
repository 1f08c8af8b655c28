// Package atonce asks the kernel for what it has in memory, in system calls that cannot wait and of which Go's scheduler is not told.
//
// An ordinary system call wakes the thread of Go's runtime that watches over the others, every 20 µs while anything runs. It takes the
// processor from whoever is in a system call for that long, and wakes another thread for it. Of calls that take a twentieth of a
// millisecond this was an eighth of the processor time.
//
// A thread that waits behind the scheduler's back keeps all others from stopping for the collector, and what is queued behind it from
// running. So nothing is done here that could wait for a disk, a network or another process: paths are followed only as far as the
// kernel knows them (RESOLVE_CACHED, Linux 5.12), files are opened and described only on the file system of the root directory, and
// only if that is one of this machine, which is the case of most machines; bytes are read and written only as far as they, or the room
// for them, are there (RWF_NOWAIT). For all else ok is false, nothing was done, and the caller makes the ordinary call.
//
// It is not worth it for a name that is absent: openat2 takes half as long again as the stat that it would replace.
package atonce
