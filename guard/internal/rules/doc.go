// Package rules compiles the permission rules of the settings and reports which of them applies to a call, an
// argument, a file or a command. It knows no verdicts.
//
// A [Compiler] makes a [List] of each [Kind]. The path rules of a list are a [Matcher], its rules on shell commands
// [Commands].
package rules
