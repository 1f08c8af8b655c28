// Package shell runs Bash commands. Each runs in a fresh shell, its output is bounded, and nothing that it started
// outlives it.
//
// # A fresh shell per command
//
// A [Runner] keeps a few shells started ahead. Each waits for one script on a descriptor, runs it and ends. So a
// command pays for neither the fork nor bash's start-up, and still no variable, function, trap, option or alias of
// one command reaches the next. Only the working directory carries over: the shell reports where it ended, and the
// caller hands that to the next command.
//
// The command's text is data. It is written to a descriptor and given to eval. It is never pasted into a script, so
// no quote or bracket in it can change the code around it. Standard input is /dev/null and there is no terminal, so a
// program that prompts fails at once.
//
// Last of all a shell reports where it ended, its exit status, and whether anything is left to run in the shell, such
// as a trap. If nothing is left, and the shell has no descendants, a sandbox ends it at that moment
// ([supervise.Finisher]), and the result is returned while the kernel is still releasing the shell. If its command
// left files open in it, the next command waits until they are closed. For the first milliseconds the thread that
// handed over the command waits itself: waking another one would take longer than most commands run.
//
// # Nothing survives
//
// Every shell runs under its own supervisor, or in a sandbox; package supervise says what that guarantees. The
// function that a [Runner] gets to start processes must end all descendants of each process. Shells that wait for
// their script run as the user of the commands too, so without a sandbox a command can interfere with them.
//
// # Output
//
// Standard output and standard error share one pipe, which keeps their order. A collector bounds what is kept of it.
//
// # Environment
//
// The environment of commands is made from that of the server (derive). findBash finds the bash that runs them,
// and a [Login] the PATH that the user's login shell would give them.
package shell
