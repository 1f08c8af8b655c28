// Package command finds the programs that a text given to bash may run, without
// running anything: it parses the text, expands its words as far as they do not
// depend on the machine, and looks into wrappers (sudo, timeout, xargs,
// bash -c, find -exec …). It reads no other language than that of the shell.
//
// The result is meant for permission rules, so it errs on one side: a command
// that could run is listed, even if it never will, and what cannot be known
// before the text runs is named in [Analysis.Undecidable] rather than dropped.
// It is no sandbox. A listed program may start others (make, npm, an interpreter,
// a script): these are judged when they start, where the machine can do that.
//
// # Matching rules
//
// An allow rule is matched against [Simple.Text] or [Simple.Source] of every
// command; deny and ask rules against every text in [Simple.Forms]. A word that
// is not [Word.Static] appears in these texts as it was written: a rule about a
// particular option cannot see into it, and [Simple.Dynamic] says so.
//
// The package is pure: no file system, no processes, no state that changes.
package command
