// Package landlock speaks to the security module of this name, see landlock(7). It calls the kernel directly: the
// go-landlock library restricts every thread of the process, we restrict one. It is empty but on Linux.
package landlock
