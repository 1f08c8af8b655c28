// Package settings reads the guard's rules: it finds the settings files, reads them, merges them by
// precedence and follows them while the server runs.
//
// # Sources
//
// Highest first: managed files, the command line, each root's local file, each root's project file,
// the user's own files. Each file of Claude Code has a counterpart of ours with the same shape, for
// people who do not use Claude Code; ours has precedence. Lists of all sources are joined, highest
// source first. For a scalar the highest source wins. A deny counts at every level.
//
// # Trust
//
// Project and local files may come with a cloned repository. Entries in them that tighten (deny,
// ask, a stricter mode, …) always count. Entries that loosen (allow, additional directories, hooks,
// environment, a weaker sandbox) count once the user has trusted the workspace, and trust is bound
// to a hash of exactly that content. The hash covers the content of the settings files, not the
// programs that their hooks run.
//
// # A running server
//
// A [Watcher] applies tightening from every file at once. It applies loosening from the user's and
// managed files only, or when the user trusts the new content: a deny or a PreToolUse hook that
// vanishes from a project file stays in force until the server is started again, an allow that
// appears there waits for trust. Files given by --settings keep their content from the start.
//
// # Bad files
//
// A file that cannot be read or parsed never stops the server and never loosens. On the first
// reading it is listed in [Settings.Broken], and the guard refuses every call while that is not
// empty. On a later reading the file's last good content stays in force with a warning. A workspace
// file that does not parse stops no call: it allows nothing, and what its last good content denies
// stays denied.
//
// Its Go API is not stable.
package settings
