// Package hook runs the hooks that users configure: commands and HTTP services
// that see a call before and after it runs and can refuse, rewrite or annotate it.
//
// The hooks, their input and their answers are those of Claude Code
// (https://code.claude.com/docs/en/hooks), so that existing hooks work for every client. The caller's
// settings choose them; this package runs them and returns their decisions. It does not change or judge
// calls: an Allow of a hook never overrides a deny or ask rule, and a rewritten input must be bound and
// judged again from the start. Both are the caller's work.
//
// # Which hooks run
//
// A matcher that is empty or "*" matches every tool. One of letters, digits and
// "_ , | -" is a list of exact tool names, separated by "|" or ",". Anything else
// is an unanchored regular expression in Go's syntax. Our tools answer to the names that
// clients show as well, mcp__toolhost__Edit for Edit. Hooks that are written
// alike (same command, or same URL and headers) run once for an event, with the
// time-out of the first. All run in parallel.
//
// # What a hook gets
//
// The event is one JSON object on standard input, or the body of a POST. The tool's input and response are
// encoded again: a client cannot hide a word from a hook that searches the text by writing it in escapes.
//
// A command is run by bash (by sh if there is no bash) in Config.Dir, without the server's own variables,
// with CLAUDE_PROJECT_DIR. One with arguments (args) is started directly, after ${CLAUDE_PROJECT_DIR} was
// replaced in both. Config.Outside decides whether it runs with the rights of the server or in a sandbox, and
// so whether its answer can allow anything.
//
// In the headers of an HTTP hook $TOKEN and ${TOKEN} stand for a variable of the
// server if allowedEnvVars names it, and for nothing otherwise. Redirects are not
// followed.
//
// An async hook is started and not waited for; it cannot refuse.
//
// # What a hook answers
//
// Exit code 0, or a status of 2xx: no output, text that is not read, or a JSON object. Exit code 2 refuses, with
// standard error as the reason. Everything else is a failure: another exit code or status, a command that cannot
// start, no answer in time, an answer that cannot be read. As with Claude Code, the call goes on, and its result says
// so. A failure refuses the call if the hook is strict, if the host cannot run the hook, or if the answer holds a
// word that refuses, such as JSON after a line of text, or a decision in the wrong place.
//
// # When a hook ends
//
// A hook ends with its answer, its time-out, or the call's context, whichever is first, and so does
// everything it has started. How far that goes depends on Config.Start. There is no grace time: it is
// killed. Processes that a command leaves running have a tenth of a second after the shell's end to finish
// its output, and two seconds more while they hold the output open and nothing has been answered. Later
// output is ignored.
//
// Its Go API is not stable.
package hook
