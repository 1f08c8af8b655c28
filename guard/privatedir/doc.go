// Package privatedir gives the commands of one caller directories of their own in the
// place of those that all programs of a machine share: /tmp, /var/tmp and /run.
//
// A [Place] is one of them. What the caller makes there lies in a directory of the
// host's state. Next to it commands see, read-only, what the host's directory holds,
// except sockets and named pipes: each such entry has an empty mount point in the
// place, on which the sandbox mounts it. [Set.Locate] says where a name lies, so that
// the file tools and the commands of a caller mean the same file by it.
//
// A [Store] removes everything when it is closed, and what a killed host left when the
// next one opens it.
//
// Its Go API is not stable.
package privatedir
