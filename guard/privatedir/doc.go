// Package privatedir gives the commands of one caller private directories in place of those that
// all programs of a machine share: /tmp, /var/tmp and /run.
//
// A [Place] is one of them. Files of the caller lie in a directory of the host's state. Commands
// also see, read-only, the entries of the host's directory, except sockets and named pipes: each
// entry has an empty mount point in the place, on which the sandbox mounts it. [Set.Locate] returns
// where a name leads, so that a name means the same file to the file tools and the commands of a
// caller.
//
// A [Store] removes everything when it is closed. The next Open removes the files of a killed host.
//
// Its Go API is not stable.
package privatedir
