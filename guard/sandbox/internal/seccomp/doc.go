// Package seccomp is the filter of system calls that commands run under. It is empty but on Linux.
package seccomp
