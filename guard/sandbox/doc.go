// Package sandbox runs commands so that the kernel decides what they can access; their
// text is not read.
//
// A [Policy] names the paths that a command may write, the paths in them that it may not
// write, and the paths that it may not read. [Start] turns it into a
// [Sandbox], and [Sandbox.Spawn] starts commands in it. The backend
// depends on the machine; [Report] says what is enforced. If nothing can be
// enforced, Start fails with [ErrUnavailable].
//
// # Linux namespaces
//
// The preferred backend needs no other program. The host's program starts itself again
// as process 1 of new user, mount, PID, network, IPC, UTS and cgroup namespaces: see package
// internal/supervisor. Package internal/namespaces makes what commands find there. Process 1
// runs as long as the sandbox: a command costs one message and one fork. When it ends, for any
// reason, the kernel kills every process inside; it ends with the host.
//
// Root in a sandbox has no capabilities: it can read and change only what its owner and
// mode allow.
//
// The host must be dumpable (PR_SET_DUMPABLE) when a
// sandbox starts, or the kernel does not let it set up the user namespace.
//
// With [Policy].Overlay each directory that commands write is an overlay of the host's. What other programs change
// there is seen after [Sandbox.Refresh]. Directories of the host cannot be renamed there.
//
// # Network
//
// Process 1 makes a TUN device with a route to everything, and hands its descriptor to the host, where package
// netstack resolves names and keeps each connection attempt until the host of the sandbox has judged and made it.
// Files of its own (resolv.conf, nsswitch.conf, hosts) lead programs to that resolver. Programs that use the proxy
// variables reach hosts by the proxy, which judges by the same rules; where there is no /dev/net/tun they are the
// only ones that do, and the report says so. A host that no list names is put to the [connectgate.Gate] of the command
// that connects.
//
// # Unix sockets
//
// Package connectgate makes the connections of commands, and with them decides which Unix sockets they reach: those
// that a process in their network namespace listens on, and those in [Policy].Sockets.
//
// # Programs
//
// With [Spec].Execs each start of a program by a command and its descendants is judged: see package execgate. In
// namespaces the files in [Policy].Programs are covered by an empty file of mode 0111 as well: it is found, judged and
// refused by its name like the program, and if the kernel is made to start it, nothing runs.
//
// # Changes
//
// With [Options].Writes the filter hands each call to the host that may change files, by a name or by opening one,
// before the kernel carries it out. The host looks at no argument, so that nothing can be changed meanwhile: it learns
// that something may change from now on, and of each call, when it is over for certain. See [WriteGate].
//
// # Other backends
//
// Landlock allows writes only in the writable paths and hides
// files outside of them, but can neither hide nor protect files inside
// them; the report says so. On macOS nothing contains commands unless the
// settings want seatbelt: a profile for sandbox-exec is generated, which was
// not tried on a real machine, and processes can survive. Other systems have no sandbox.
//
// # Rooms
//
// What stands below this package knows nothing of it: execgate and connectgate (what the host answers for commands),
// internal/contract (what passes between the host and the process inside), internal/supervisor, internal/namespaces and
// internal/landlock (what the process inside does), internal/place, internal/proc, internal/behalf and internal/kernel
// (what all of these stand on). This package makes a plan of a policy, starts the process inside, and has its host's
// end, the network of commands, and what is left to other systems.
//
// # What is not prevented
//
//   - Reading a copy of a denied file, or a hard link to it outside the writable paths.
//   - Reading what version control has stored: "git show HEAD:.env".
//   - Use of a descriptor that a running command opened before the file was denied.
//   - A command can read a file that appears on the host while the command runs,
//     until [Sandbox.Deny] covers it (about a millisecond).
//   - A protected path that does not exist at the start cannot be covered;
//     [Quarantine] moves away what was created there.
//   - Data can be sent to an allowed host.
//   - What a command writes into the writable paths may be executed outside
//     later: a build script, an edited package.json. Package baseline removes what git and the
//     host obey.
//   - Commands of one sandbox can see, signal and trace each other, and the shells that
//     wait for the next command.
//   - A named pipe of another program can be used if its mode allows that, unless it lies directly in a directory that
//     [Private] replaces or [Policy].Denied names it.
//   - Disk space and memory are not limited. Of the resources that the kernel counts for
//     the user and not for a namespace, a part is reserved for the host, but not of watches with
//     Landlock. When memory runs out, commands are
//     killed first.
//
// Its Go API is not stable.
package sandbox
