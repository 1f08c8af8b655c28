//go:build unix

package main

import (
	"io/fs"
	"os"
	"syscall"
)

// pollable returns f so that a read parks its goroutine instead of blocking a thread, which makes the answer
// to a call wait for the scheduler. Only of pipes and sockets: their reading end is ours alone, while a
// terminal's mode is shared with the shell that started us.
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
