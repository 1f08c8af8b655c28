package realpath

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

// ErrSwapped reports that a path is not what it was when a name was followed to it: a
// directory or the file itself became a symbolic link, or another file took its place.
// Nothing was opened.
var ErrSwapped = errors.New("the path changed after it was checked")

// ErrPart reports that a file is larger than was allowed, or was not read to its end.
var ErrPart = errors.New("it cannot be read completely, or is not a file of a usual size")

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

// OpenSmall opens a regular file of which little is read, and no read of it waits for long.
func OpenSmall(path string) (*os.File, error) {
	f, err := Open(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, errors.Join(err, ErrKind)
	}
	DoNotWait(f, info)
	return f, nil
}

// ErrKind reports that there is something else in the place of a file.
var ErrKind = errors.New("no regular file")

// readTime is how long reads of a file wait at most.
const readTime = 100 * time.Millisecond

// DoNotWait bounds the wait for what is read of a regular file. The kernel has some, without a size, that wait for
// what is still to come, such as /proc/kmsg, and a link may lead to them.
func DoNotWait(f *os.File, info fs.FileInfo) {
	if info.Size() == 0 {
		_ = f.SetReadDeadline(time.Now().Add(readTime)) // others have no reads that wait
	}
}

// ReadSmall reads a regular file of at most so many bytes.
func ReadSmall(path string, most int64) ([]byte, error) {
	f, err := OpenSmall(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil || int64(len(raw)) > most {
		return nil, errors.Join(ErrPart, err)
	}
	return raw, nil
}
