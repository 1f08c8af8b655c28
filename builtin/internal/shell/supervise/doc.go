// Package supervise starts processes so that nothing which one starts outlives it.
//
// On Linux every process runs under a supervisor of its own: this very program,
// started again by [Run] as a child subreaper. Whatever leaves the
// process's session, forks twice or ignores SIGTERM becomes the supervisor's
// child, and the supervisor kills until wait(2) says that no child is left: when
// it is told to, and when the server dies, even by SIGKILL, which the supervisor
// sees at the other end of its socket.
//
// The supervisor runs as the same user as the process, so a command can kill
// it. The process itself then dies with it (PR_SET_PDEATHSIG), and the server
// kills every process of its session and every process that carries the
// command's identifier in its environment ([CallVariable]). What remains: a
// process that killed the supervisor, started a session of its own and emptied
// its environment; a command that kills the server as well as the supervisor;
// and work handed to another process (cron, at, systemd-run, a container
// daemon). Only the sandbox ends these, because it has a process namespace.
//
// macOS has no subreaper: the supervisor kills the process group, the session
// and all that still descends from it, but a process that left the session and
// whose parent has died is not found. Windows uses a job object. Both are best
// effort and unproven here; other systems refuse to run commands.
package supervise
