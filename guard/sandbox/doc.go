// Package sandbox runs commands so that the kernel, not the reading of their
// text, decides what they can touch.
//
// A [Policy] names what a command may write, what it may not write although it
// lies inside, and what it may not even read. [Start] turns it into a
// [Sandbox], and [Sandbox.Spawn] starts commands in it. Which means are used
// depends on the machine; [Report] says what is enforced, and never claims
// more. Where nothing can be enforced Start fails with [ErrUnavailable].
//
// # Linux namespaces
//
// The preferred means needs nothing installed. The program starts itself again
// ([Init]) as process 1 of new user, mount, PID, network, IPC, UTS and cgroup
// namespaces. There the whole file system is made read-only, the writable
// paths are opened again, protected ones closed, and denied ones covered by an
// empty object of mode 000: reading fails instead of yielding emptiness, so
// that a "git commit -a" cannot record an emptied file. Process 1 stays warm:
// a command costs one message and one fork. It has two faces: control threads,
// which keep the right to mount, so that a file that appears later can be
// covered while the sandbox lives; and one spawner thread, from which every
// command descends, with no_new_privs, an empty bounding set, a seccomp filter
// and Landlock. When process 1 ends, for whatever reason, the kernel kills
// every process inside. It ends when its socket to the host closes, thus also
// when the host is killed.
//
// Root in a sandbox is an owner of files like any other: without capabilities it
// can neither read nor change what only root's power opens.
//
// Two conditions on the host: it must be dumpable (PR_SET_DUMPABLE) when a
// sandbox starts, or the kernel does not let it set up the user namespace; and
// it must call [Init] before it reads its arguments.
//
// # Unix sockets
//
// The filter hands connect(2) of every command to the host, which makes the connection
// with a copy of the socket and never lets the kernel run the call, whose address
// another thread could change. A path is looked up as the caller would, and the file it
// leads to is judged: commands connect to sockets that a process in their network
// namespace listens on, which the kernel tells by inode (sock_diag), and to those in
// [Policy].Sockets. Names do not matter, nor when and how a socket was bound. Datagram
// sockets of the Unix family, and pairs of them, are refused: they send to a path
// without connect(2). To a server, the peer's process number (SO_PEERCRED) is the host's,
// which is 0 inside; user and group are the command's.
//
// Where a connection cannot be judged (Linux before 5.9, no pidfd_getfd,
// process_vm_readv or CONFIG_UNIX_DIAG, a container that has a listener itself) commands
// have no Unix sockets but pairs, and the report says so. So it is where Landlock is all
// that contains commands, before its version 9.
//
// # Programs
//
// With [Spec].Execs the filter hands execve(2) and execveat(2) of a command and its
// descendants to the host, which asks the [ExecJudge] of the command's [ExecGate]. The
// host reads the arguments, and looks the path up as the process would, with the files
// that "#!" lines and the arguments of a dynamic loader name. What it does not find, or
// may not be executed, it answers itself; the kernel goes on only with a call that was
// judged. In namespaces a command is known by its UTS namespace, which none of its
// processes can leave; else each command has a listener of its own.
//
// The kernel reads path and arguments again when it goes on, so they may have changed.
// With [ExecVerdict].Confirm the host stops the process before the first instruction of
// the new program (PTRACE_EVENT_EXEC), compares program and arguments with what was
// judged, and kills it on a difference. It does so by itself for a process with several
// threads, and for one that shares its memory with a parent that runs. It cannot
// know of memory that is shared otherwise, or that another process writes, nor of
// a file that is exchanged. In namespaces the files in Policy.Programs are therefore
// covered by an empty file of mode 0111: it is looked for, judged and refused by its
// name like the program, and if the kernel is made to start it, nothing runs.
//
// A process whose memory cannot be read, because it runs a program that its user may not
// read or because it has asked for that (PR_SET_DUMPABLE), starts nothing. A program that
// wants a listener of its own gets EBUSY. Without a sandbox, [ListenExecs] and
// [ExecGate.Serve] do the same, for programs of 32 bits as well; setuid programs and file
// capabilities have no effect then (no_new_privs), and a command that has another
// program start something (systemd-run, at, docker) is not followed. When the host is
// killed, what waits is ended with everything else; with bubblewrap it fails shortly
// before. [ExecGateWorks] tells whether all this works here: Linux 5.5 or later is
// needed, 5.19 for signals not to repeat what is being judged.
//
// # The other means
//
// Bubblewrap makes the same view with a program that must be installed, for
// each command; some systems allow user namespaces to it, and not to this program.
// Landlock allows writes only in the writable paths and hides
// files outside of them, but can neither hide nor protect files inside
// them; the report says so. On macOS a profile for sandbox-exec is generated;
// processes can survive there. Other systems have no sandbox.
//
// # What is not held
//
//   - A copy of a denied file, or a hard link to it outside the writable paths.
//   - What version control stored already: "git show HEAD:.env".
//   - A descriptor of a denied file that a running command opened before the
//     file was denied.
//   - A file that appears on the host while a command runs can be read by that
//     very command until [Sandbox.Deny] covered it (about a millisecond).
//   - A protected path that does not exist at the start cannot be covered;
//     [Quarantine] moves away what was created there.
//   - With bubblewrap, which resolves names anew for every command: a directory
//     that a command running at that moment exchanges.
//   - An allowed host is a way out for data.
//   - What a command writes into the writable paths may be executed outside
//     later: a build script, an edited package.json. Package baseline removes what git and the
//     host obey.
//   - Commands of one sandbox can see, signal and trace each other, the shells that
//     wait for the next command included.
//   - A named pipe of another program, unless [Policy].Denied names it, where it lies in no [Private] directory.
//   - Disk space and memory are not limited, nor is what the kernel counts for the
//     user and not for a namespace, but for a part that is left to the host; with
//     bubblewrap and Landlock, watches are not. When memory runs out, commands are
//     killed before others.
//
// Its Go API is not stable.
package sandbox
