// Package guard decides whether a call may have the effects that it asks for.
//
// A tool resolves every name it was given with [Policy.Resolve], lists the effects of the call in an [Intent], and
// gets a [Verdict] from [Policy.Judge]. The [Path] that was judged is the only thing it can open, and opening follows
// no symbolic link: a file that is swapped between judging and opening is detected.
//
// # Rules
//
// The rules are those of Claude Code settings files: permissions.allow, ask and deny hold entries Tool or
// Tool(specifier), of any source. Deny rules apply before ask rules, and those before allow rules; how specific a
// rule is does not matter.
//
//   - Bash(text): without * an exact command. * matches any text. "ls *" and
//     "ls:*" match ls with or without arguments, but not lsof. The command is
//     parsed, never matched as one text: an allow rule must match every simple
//     command in it, a deny or ask rule any, wherever it is nested.
//   - Read(p), Edit(p): gitignore patterns. //p is absolute, ~/p is in the home
//     directory, /p relative to where the settings belong, p to each root; a bare
//     name matches at any depth; !p carves out of earlier patterns of the same
//     file. A Read deny blocks Edit and Write as well.
//   - Tool(parameter:value) in deny and ask, mcp__server__tool, and * for every
//     tool in deny and ask.
//
// # Beyond the rules
//
// Reads and writes stay inside the roots and additional directories. Settings files are never written. The host's
// state and the home directory's secrets are masked. Writes to protected paths and critical removals always require
// approval. Rules that parsing shell text cannot enforce, a [Containment] must: where rules deny files and it cannot
// enforce them, Bash is refused, or requires approval if the settings say so.
//
// The caller asks people for approval, runs hooks and records verdicts.
//
// # Files and packages
//
// judge.go judges the tool and its arguments, and has each effect of the intent judge itself: each kind of effect has
// a file effect_*.go. judge.go has the checks of a file, judge_command.go those of a command, and the other files
// judge_* their parts. commandline.go finds the directories that a command works in; hook*.go determine how hooks
// run; exec*.go judge programs when they start; hardlink*.go find the other names of files; protected.go lists the
// files that affect other programs. The files sandbox* list what a containment must enforce. The packages in internal
// do not depend on verdicts: rules, which rule applies to a call; command, what a shell line would do; realpath,
// where a name leads, and how to open exactly that file; pathname, when two names are the same, and what patterns
// match; gitrepo, what git would run by itself; proxy, which hosts commands reach.
package guard
