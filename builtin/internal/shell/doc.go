// Package shell runs Bash commands: each in a fresh shell, with bounded output,
// and so that nothing a command started outlives it.
//
// # A fresh shell per command
//
// A [Runner] keeps a few shells started ahead. Each waits for one script on a
// descriptor, runs it and is gone; so a command pays for neither the fork nor
// bash's start-up, and still no variable, function, trap, option or alias of
// one command reaches the next. Only the working directory goes on: the shell
// reports where it ended, and the caller hands that to the next command.
//
// The command's text is data. It is written to a descriptor and given to eval;
// it is never pasted into a script, so no quote or bracket in it can change what
// is around it. Standard input is /dev/null and there is no terminal: what would
// prompt fails at once.
//
// The last thing that a shell does for a command is to report: where it ended, its
// exit status, and whether anything is left to run in the shell, a trap for one. If
// nothing is, and nothing descends from the shell, a sandbox ends it there and then
// ([Concluder]), and the result goes out while the system still takes the shell
// apart. If its command left anything open in it, the next one waits for that. For
// the first milliseconds the thread that handed over the command waits itself: to
// wake others would take longer than most commands run.
//
// # Nothing survives
//
// On Linux every shell runs under a supervisor of its own: this very program,
// started again by [RunSupervisor] as a child subreaper. Whatever leaves the
// shell's session, forks twice or ignores SIGTERM becomes the supervisor's
// child, and the supervisor kills until wait(2) says that no child is left: when
// the command has returned, when its time is over, when it is cancelled, and
// when the server dies, even by SIGKILL, which the supervisor sees at the
// other end of its socket.
//
// The supervisor runs as the same user as the command, so a command can kill
// it. The shell itself then dies with it (PR_SET_PDEATHSIG), and the runner
// kills every process of the shell's session and every process that carries the
// command's identifier in its environment ([CallVariable]). What remains: a
// process that killed the supervisor, started a session of its own and emptied
// its environment; a command that kills the server as well as the supervisor;
// and work handed to somebody else's process (cron, at, systemd-run, a container
// daemon). Shells that wait for their script belong to the same user too, so a
// command can interfere with them. Only the sandbox ends these, because it has
// a process namespace.
//
// macOS has no subreaper: the supervisor kills the process group, the session
// and all that still descends from it, but a process that left the session and
// whose parent has died is not found. Windows uses a job object. Both are best
// effort and unproven here; other systems refuse to run commands.
//
// # Output
//
// Standard output and standard error share one pipe, which keeps their order.
// What arrives is cleaned ([Clean]) and held as a head and a tail of fixed size;
// the whole goes to a spill file, up to a cap, once it is longer than both.
package shell
