// Package rulebook compiles the permission rules of the settings and tells which of them speaks of a call, an argument, a file or a
// command. What becomes of it then is not its business: it knows no verdict.
//
// A [Compiler] makes a [List] of each [Kind]. The path rules of a list are a [Matcher], its rules on shell commands [Commands].
package rulebook
