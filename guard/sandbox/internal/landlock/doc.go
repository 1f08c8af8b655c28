// Package landlock makes rules of Landlock, by which the kernel allows a thread and its descendants some accesses to
// files and no others.
//
// [Access] is all that confines a command where namespaces cannot be made: it may read what is not hidden, and change
// what is writable. It can only allow, so nothing inside a writable path can be hidden or protected. [Writes] repeats
// in namespaces what the mounts say, by a second, independent mechanism. [Ruleset.Restrict] puts one thread under
// them, where the go-landlock library restricts every thread.
package landlock
