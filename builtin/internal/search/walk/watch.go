package walk

// A [Queue] reports exactly what has changed in directories: a change whose system call has
// returned is among the events that the next Drain yields.
//
// That holds on Linux, where the kernel queues an event before the call that
// caused it returns, and where the queue is read here and not by a goroutine. Other systems
// give no such guarantee, and OpenQueue fails.
//
// No event announces stores through a shared mapping until the file is closed, nor writes
// through another name of the file (a hard link) in a directory that is not watched.

import "errors"

// ErrUnsupported is returned by OpenQueue where changes cannot be known exactly.
var ErrUnsupported = errors.New("this system does not report changes before they are made")

// EventKind is the kind of an event.
type EventKind uint8

const (
	// Overflow: events were lost; anything may have changed.
	Overflow EventKind = iota
	// Content: the entry's content or metadata has changed.
	Content
	// Name: the entry has come, gone, or become another file.
	Name
	// Self: the watched directory has moved, is deleted or unmounted, or its
	// watch has ended.
	Self
)

// Event is one change.
type Event struct {
	Kind EventKind
	// Watch is the directory's, as Add returned it. Not set on Overflow.
	Watch int32
	// Entry is the name in the directory (Content, Name); Dir says that it is a
	// directory.
	Entry string
	Dir   bool
}
