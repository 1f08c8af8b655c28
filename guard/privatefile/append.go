package privatefile

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/toolhost/toolhost/guard/internal/realpath"
)

// Append opens a file for appending in a directory where other users could have replaced it, and creates it if it
// does not exist. No directory above it may be a symbolic link. The file must be a regular file of the user, or of
// root, with no other name: otherwise the data could reach a file that another user has chosen.
func Append(file string) (*os.File, error) {
	dir, err := realpath.OpenDir(filepath.Dir(file))
	if err != nil {
		return nil, fmt.Errorf("%s: its directory cannot be opened: %w", file, err)
	}
	defer dir.Close()
	base := filepath.Base(file)
	f, err := dir.OpenFile(base, os.O_WRONLY|os.O_CREATE|os.O_APPEND|NoWait|NoFollow, 0o600)
	named, lookErr := dir.Lstat(base)
	switch {
	case lookErr == nil && named.IsDir():
		err = fmt.Errorf("%s is a directory: name a file", file)
	case lookErr == nil && !named.Mode().IsRegular():
		err = fmt.Errorf("%s is not a regular file but %v, and tools can write in its directory: remove it", file,
			named.Mode().Type())
	case err == nil:
		err = lookErr
	}
	if err == nil {
		err = own(f, named)
	}
	if err != nil && f != nil {
		f.Close()
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// own verifies that an open file is the one that was named, and of no other user.
func own(f *os.File, named os.FileInfo) error {
	opened, err := f.Stat()
	if err != nil {
		return err
	}
	_, names := realpath.Identify(opened)
	switch {
	case !os.SameFile(opened, named):
		return fmt.Errorf("%s was replaced while it was opened", f.Name())
	case !Ours(opened):
		return fmt.Errorf("%s belongs to another user: remove it", f.Name())
	case names > 1:
		return fmt.Errorf("%s has %d names (hard links), and what is written would be in all of them: remove it",
			f.Name(), names)
	}
	return nil
}
