// Package supervise starts processes, and ends all their descendants with them.
//
// On Linux every process runs under a supervisor of its own: this program,
// started again as a child subreaper, which an init function of this package runs before
// main. A descendant that leaves the
// process's session, forks twice or ignores SIGTERM becomes the supervisor's
// child, and the supervisor kills until wait(2) reports that no child is left: on
// request, and when the server dies, even by SIGKILL, which closes the supervisor's
// socket.
//
// The supervisor runs as the same user as the process, so a command can kill
// it. The process itself then dies with it (PR_SET_PDEATHSIG), and the server
// kills every process of its session and every process that carries the
// command's identifier in its environment ([CallVariable]). These are not
// ended: a process that killed the supervisor, started a session of its own and emptied
// its environment; descendants of a command that kills the server and the supervisor;
// and work of another process (cron, at, systemd-run, a container
// daemon). Only the sandbox ends the first two, because it has a process namespace.
//
// macOS has no subreaper: the supervisor kills the process group, the session
// and its descendants, but not a process that left the session and
// whose parent has died. Windows uses a job object. Both are not
// tested; other systems refuse to run commands.
package supervise
