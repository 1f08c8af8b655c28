// Package kernel calls the Linux interfaces that contain commands: the seccomp filter of system calls, its
// notifications (seccomp_unotify(2)), and sock_diag(7), which lists the Unix sockets that programs listen on. It is
// empty on other systems.
package kernel
