package privatefile

import (
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/toolhost/toolhost/guard/internal/realpath"
	"github.com/toolhost/toolhost/guard/lease"
)

// Read reads a file of at most the given number of bytes. It refuses anything but a regular file, such as a pipe that
// has replaced the file, without waiting, and also files of the kernel that wait for data.
func Read(file string, most int64) ([]byte, error) {
	f, err := lease.Open(file, func() (*os.File, error) { return os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0) })
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", file)
	}
	realpath.DoNotWait(f, info)
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		return nil, fmt.Errorf("%s is longer than %d bytes", file, most)
	}
	return text, err
}
