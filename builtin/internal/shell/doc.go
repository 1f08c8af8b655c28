// Package shell runs Bash commands: each in a fresh shell, with bounded output,
// and so that nothing a command started outlives it.
//
// # A fresh shell per command
//
// A [Runner] keeps a few shells started ahead. Each waits for one script on a
// descriptor, runs it and is gone; so a command pays for neither the fork nor
// bash's start-up, and still no variable, function, trap, option or alias of
// one command reaches the next. Only the working directory carries over: the shell
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
// ([supervise.Finisher]), and the result goes out while the system still takes the shell
// apart. If its command left anything open in it, the next one waits for that. For
// the first milliseconds the thread that handed over the command waits itself: to
// wake others would take longer than most commands run.
//
// # Nothing survives
//
// Every shell runs under a supervisor of its own, or in a sandbox; package supervise
// says what that holds and what not. What a [Runner] is given to start processes with
// must end everything that descends from one. Shells that wait for their script belong
// to the user of the commands too, so without a sandbox a command can interfere with
// them.
//
// # Output
//
// Standard output and standard error share one pipe, which keeps their order.
// A collector bounds what is kept of it.
//
// # Environment
//
// The environment of commands is made from that of the server ([Derive]). [FindBash] finds the bash that runs
// them, and a [Login] the PATH that the user's login shell would give them.
package shell
