package realpath

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// ErrSwapped reports that a path is not what it was when a name was followed to it: a
// directory or the file itself became a symbolic link, or another file took its place.
// Nothing was opened.
var ErrSwapped = errors.New("the path changed after it was checked")

// ErrPart reports that a file is larger than was allowed, or was not read to its end.
var ErrPart = errors.New("it cannot be read whole, or is no file of a usual size")

// OpenAs is [Open] for the file that a name was followed to: no hard link to another one
// has taken its place.
func OpenAs(path string, was ID, flag int) (*os.File, error) {
	f, err := Open(path, flag)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = unswapped(was, info)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Stat describes what is at path.
func Stat(path string) (fs.FileInfo, error) {
	f, err := openBare(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Stat()
}

// OpenDir opens the directory at path.
func OpenDir(path string) (*os.Root, error) {
	judged, err := openBare(path)
	if err != nil {
		return nil, err
	}
	defer judged.Close()
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	same, err := sameDirectory(judged, root)
	if err == nil && !same {
		err = ErrSwapped
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return root, nil
}

func sameDirectory(judged *os.File, root *os.Root) (bool, error) {
	a, err := judged.Stat()
	if err != nil {
		return false, err
	}
	b, err := root.Stat(".")
	if err != nil {
		return false, err
	}
	return os.SameFile(a, b), nil
}

// ReadSmall reads a regular file of at most so many bytes.
func ReadSmall(path string, most int64) ([]byte, error) {
	f, err := Open(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, errors.New("no regular file"))
	}
	raw, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil || int64(len(raw)) > most {
		return nil, errors.Join(ErrPart, err)
	}
	return raw, nil
}
