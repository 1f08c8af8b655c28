// Package recipe finds the commands that task runners (make, npm, just, task) run for
// what they are asked for, in the text of their files. It reads them as far as people
// write them: what is computed when the runner runs is not known to it.
package recipe

// A Run is what one target or script runs.
type Run struct {
	Target string // as the file names it
	Text   string // shell commands, a line each or a script
}

// Any stands for a target or script that is not known before the runner is started.
const Any = "\x01"
