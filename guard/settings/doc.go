// Package settings says where the guard's rules come from: it finds the
// settings files, reads them, merges them by precedence and follows them
// while the server runs.
//
// # Sources
//
// Highest first: managed files, the command line, each root's local file, each
// root's project file, the user's own files. Next to every file of Claude Code
// stands one of ours with the same shape, for those who do not use Claude Code;
// ours goes before it. Lists of all sources are joined, highest source first.
// Of a scalar the highest source wins. A deny counts at every level.
//
// # Trust
//
// Project and local files may come with a cloned repository. What tightens in
// them (deny, ask, a stricter mode, …) always counts. What loosens (allow,
// additional directories, hooks, environment, a weaker sandbox) counts once the
// user has trusted the workspace, and trust is bound to a hash of exactly that
// content. The hash covers what the settings files say, not the programs that
// their hooks run.
//
// # A running server
//
// A [Watcher] takes tightening from every file at once. Loosening it takes from
// the user's and managed files only, or when the user trusts the new content: a
// deny or a PreToolUse hook that vanishes from a project file stays in force
// until the server is started again, an allow that appears there waits for
// trust. Files given by --settings are bound to what they said at the start.
//
// # Bad files
//
// A file that cannot be read or parsed never stops the server and never
// loosens. At the first reading it stands in [Settings.Broken], and the guard
// refuses every call while that is not empty. On a later reading the file's last
// good content stays in force with a warning.
//
// Its Go API is not stable.
package settings
