package mcpserver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/term"

	"github.com/toolhost/toolhost/guard"
)

// standardNames are the names of the descriptors of a program in a cell.
var standardNames = [...]string{"standard input", "standard output", "standard error"}

// checkFiles refuses descriptors that would lead a program in a cell to what its sandbox hides: an open directory
// leads to all files below it. A program gets regular files that no rule denies, pipes, sockets, terminals and the
// null device.
func checkFiles(policy *guard.Policy, files []*os.File) error {
	if len(files) > len(standardNames) {
		return fmt.Errorf("a program in a cell gets %d descriptors, not %d", len(standardNames), len(files))
	}
	for i, f := range files {
		if f == nil {
			continue
		}
		if err := checkFile(policy, f); err != nil {
			return fmt.Errorf("its %s (descriptor %d) %w. Use a file, a pipe or /dev/null instead",
				standardNames[i], i, err)
		}
	}
	return nil
}

func checkFile(policy *guard.Policy, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("cannot be examined: %w", err)
	}
	name, pathOnly := openedAs(f)
	switch mode := info.Mode(); {
	case pathOnly:
		return errors.New("was opened as a path only (O_PATH), through which hidden files could be opened")
	case mode.IsRegular():
		if name != "" && policy.Commands().Hidden(name, false) {
			return fmt.Errorf("is %s, which the rules hide", name)
		}
		return nil
	case mode&(fs.ModeNamedPipe|fs.ModeSocket) != 0, term.IsTerminal(int(f.Fd())), isNull(info):
		return nil
	case mode.IsDir():
		return errors.New("is a directory, through which files that the sandbox hides could be opened")
	case mode&fs.ModeDevice != 0:
		return errors.New("is a device")
	}
	return errors.New("is a file of an unknown kind")
}

// isNull reports whether a file is the null device, on whatever file system.
func isNull(info fs.FileInfo) bool {
	null, err := os.Stat(os.DevNull)
	return err == nil && (os.SameFile(null, info) || sameDevice(null, info))
}
