// Package realpath finds where a name leads, and opens what was found there and nothing else.
//
// [Follow] walks a name as the kernel does and returns its real path, in which no symbolic link is left. What opens a
// real path follows none: one that has come into it since is [ErrSwapped]. It knows no rule.
package realpath
