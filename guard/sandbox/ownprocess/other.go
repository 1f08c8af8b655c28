//go:build !linux

// Package ownprocess changes the process that calls it: it marks it as one of a command, and gives back its memory.
//
// Its Go API is not stable.
package ownprocess

// MarkCommand does nothing: this system has no limit that nothing else uses.
func MarkCommand() {}

// InCommand reports whether this process descends from one that was marked: here it is not known.
func InCommand() bool { return false }

// TrimWhenIdle does nothing: this system does not tell a process which of its pages are its own.
func TrimWhenIdle() {}
