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

// OpenAs is like [Open], but returns ErrSwapped if a hard link to another file than was is at path.
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

// OpenSmall opens a regular file of which little is read. Reads do not wait long, see [DoNotWait].
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

// ErrKind reports that something else than a regular file is at a path.
var ErrKind = errors.New("no regular file")

// readTime is how long reads of a file wait at most.
const readTime = 100 * time.Millisecond

// DoNotWait limits how long reads of a regular file wait. Some files of the kernel, such as /proc/kmsg, have no size
// and make reads wait for more data, and a link may lead to them.
func DoNotWait(f *os.File, info fs.FileInfo) {
	if info.Size() == 0 {
		_ = f.SetReadDeadline(time.Now().Add(readTime)) // reads of other files do not wait
	}
}

// ReadSmall reads a regular file, and returns ErrPart if it has more bytes than most.
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
