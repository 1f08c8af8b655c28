// Package connectgate makes the connections of commands, and knows which command connects.
//
// A system call filter hands connect(2) of every command to the host. There the [Connector] of the sandbox makes the
// connection with a copy of the socket, and notes the [Caller]. It never lets the kernel run the call, whose address
// another thread could change. A [Gate], one for each command, has a [Judge] for hosts that no list of the policy
// names: the proxy of the sandbox asks the gate of the command whose process has the socket. The kernel knows the
// inode of the socket by its addresses (sock_diag), and the UTS namespace of the process the command.
//
// # Unix sockets
//
// A path is looked up as the caller would, and the file it leads to is judged: commands connect to sockets that a
// process in their network namespace listens on, which the kernel lists by inode (sock_diag), and to those in
// [Config].Sockets, whatever their names, and whenever they were bound. Datagram sockets of the Unix family, and pairs
// of them, are refused: they send to a path without connect(2). To a server, the peer's process number (SO_PEERCRED)
// is the host's, which is 0 inside; user and group are the command's.
//
// Where a connection cannot be judged (Linux before 5.9, no pidfd_getfd, process_vm_readv or CONFIG_UNIX_DIAG, a
// container that has a listener itself) commands have no Unix sockets but pairs, and the report says so. The same holds
// for the Landlock backend before version 9 of Landlock.
//
// Its Go API is not stable.
package connectgate
