// Package supervisor is the process inside a sandbox that starts, watches and ends its commands: process 1 of
// namespaces, which keeps all commands of a sandbox, or one process for each command under Landlock.
//
// It exports nothing. The host starts its own program again with [contract.Arg]: the init function of this package
// then runs the part that is asked for, before main, and does not return. From there on the supervisor does what the
// plan and the requests of package contract say. Its control threads keep the right to mount. Its spawner thread, from
// which every command descends, has no_new_privs, an empty bounding set, a seccomp filter and Landlock. The kernel
// kills all that is inside when process 1 ends, for any reason; it ends when its socket to the host closes.
package supervisor
