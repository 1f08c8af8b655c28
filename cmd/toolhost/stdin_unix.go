//go:build unix

package main

import (
	"io/fs"
	"os"
	"syscall"
)

// pollable returns f in a form in which a read parks its goroutine instead of blocking a thread: a blocked thread
// delays the answer to a call. It applies to pipes and sockets only, whose reading end belongs to this process. The
// mode of a terminal is shared with the shell.
func pollable(f *os.File) *os.File {
	info, err := f.Stat()
	if err != nil || info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) == 0 {
		return f
	}
	fd := int(f.Fd())
	if err := syscall.SetNonblock(fd, true); err != nil {
		return f
	}
	return os.NewFile(uintptr(fd), f.Name())
}
