// Package settle holds changes of protected files until a person answers. Inside of the sandbox protected files are
// ordinary files: git and other programs write them. When the last command of a workspace has ended, each protected
// name that has changed is compared. What was there before while no command ran, or a person agreed to, stays. For
// anything else the former file is exchanged back, and the changed one is kept aside; it is exchanged in again while
// the next command runs. So commands always see what they wrote, and programs outside never obey what no person has
// seen. A server that runs for hours is such a command whenever it changes something, see [Session].
//
// Its Go API is not stable.
package settle
