// Package guard decides whether a call may do what it is about to do.
//
// A tool resolves every name it was given with [Policy.Resolve], says in an
// [Intent] what it would touch, and gets a [Verdict] from [Policy.Judge]. The
// [Path] that was judged is the only thing it can open, and opening follows no
// symbolic link: what is swapped between judging and opening is noticed, not
// followed.
//
// # Rules
//
// The rules are those people already keep in Claude Code settings files:
// permissions.allow, ask and deny hold entries Tool or Tool(specifier), of any
// source. Deny goes before ask, ask before allow; how specific a rule is does
// not matter.
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
// Reads and writes stay inside the roots and additional directories. Settings
// files are never written, the host's state and the home directory's secrets
// are masked, protected paths and critical removals are always asked. What rules
// on shell text cannot enforce, a [Containment] must: where rules deny files and it
// does not, Bash is refused, or requires approval if the settings say so.
//
// The caller asks persons, runs hooks and records verdicts.
//
// # Files and packages
//
// judge.go judges the tool and its arguments, and has each effect of the intent judge itself: a kind of effect is a file
// effect_*.go. judge.go has the checks of a file; line.go those of a command, and the files line_* their parts. The files
// sandbox* list what a containment must enforce. The packages in internal know no verdict: rules, which rule applies to a
// call; command, what a shell line would do; realpath, where a name leads, and how to open just that; pathname, when two names
// are the same; hardlink, which other names files have; protected, which files are more than their content; gitrepo, what git
// would run by itself; wildcard, what patterns match.
package guard
