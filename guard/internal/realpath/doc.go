// Package realpath finds where a name leads, and opens what was found there and nothing else.
//
// [Follow] walks a name as the kernel does and returns its real path, in which no symbolic link is left. The
// functions that open a real path follow no link: one that has been put into the path since then is [ErrSwapped]. The
// package knows nothing of rules.
package realpath
