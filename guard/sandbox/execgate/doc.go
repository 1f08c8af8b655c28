// Package execgate judges the programs that commands start, when they start them.
//
// A system call filter hands execve(2) and execveat(2) of a command and its descendants to the host. There a [Gate],
// one for each command, puts the attempt, an [Exec], to its [Judge], and carries out the [Verdict]. [Marks] finds the
// gate where many commands share a filter, as in namespaces: by the UTS namespace, which none of the processes of a
// command can leave. Without a sandbox, [Listen] and [Gate.Serve] do the same for one command.
//
// # How an attempt is examined
//
// The host reads the arguments, and looks the path up as the process would, with the files that "#!" lines and the
// arguments of a dynamic loader name. If the file does not exist or may not be executed, the host answers the call
// itself; the kernel continues only calls that were judged.
//
// The kernel reads path and arguments again when it continues a call, so they may have changed. With [Verdict].Confirm
// the host stops the process before the first instruction of the new program (PTRACE_EVENT_EXEC), compares program and
// arguments with what was judged, and kills it on a difference. It always does so for a process with several threads,
// and for one that shares its memory with a running parent. It cannot detect memory that is shared otherwise, or that
// another process writes, nor a file that is replaced.
//
// # Limits
//
// A process whose memory cannot be read, because it runs a program that its user may not read or because it has
// requested that (PR_SET_DUMPABLE), cannot start programs. A program that tries to install a listener of its own gets
// EBUSY. [Listen] and [Gate.Serve] judge programs of 32 bits as well; setuid programs and file capabilities have no
// effect then (no_new_privs), and a command that has another service start a program (systemd-run, at, docker) is not
// followed. When the host is killed, processes that wait for a judgement are ended with all others. [Works] reports
// whether this works here: Linux 5.5 or later is needed, 5.19 for signals not to repeat what is being judged.
//
// Its Go API is not stable.
package execgate
