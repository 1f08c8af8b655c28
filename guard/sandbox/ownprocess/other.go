//go:build !linux

// Package ownprocess changes the process that calls it: it marks it as one of a command, and gives back its memory.
//
// Its Go API is not stable.
package ownprocess

// MarkCommand does nothing: this system has no unused limit that could serve as the mark.
func MarkCommand() {}

// InCommand returns false: this system cannot tell.
func InCommand() bool { return false }

// TrimWhenIdle does nothing: this system does not tell a process which of its pages it shares with its file.
func TrimWhenIdle() {}
