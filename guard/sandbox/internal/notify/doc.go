// Package notify answers system calls that a seccomp filter hands to a listener
// instead of running them, see seccomp_unotify(2).
package notify
