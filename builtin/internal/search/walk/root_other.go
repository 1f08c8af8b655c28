//go:build !linux

package walk

import (
	"io/fs"
	"os"

	"github.com/toolhost/toolhost/guard/privatefile"
)

// Root is an open directory. Its methods may be called concurrently.
//
// Outside of Linux it uses os.Root: no path can leave the root. Links are refused
// by an Lstat before the open; one that is swapped in between is followed, within
// the root.
type Root struct{ root *os.Root }

// OpenRoot opens a directory by its real path.
func OpenRoot(path string) (*Root, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &Root{root}, nil
}

// Sub opens the directory rel as a root of its own.
func (r *Root) Sub(rel string) (*Root, error) {
	if err := r.want(rel, Dir); err != nil {
		return nil, err
	}
	root, err := r.root.OpenRoot(rel)
	if err != nil {
		return nil, err
	}
	return &Root{root}, nil
}

// ID is not known here.
func (r *Root) ID() ID { return ID{} }

// Local says that every change of a file is one that the kernel of this machine
// makes: not known here.
func (r *Root) Local() bool { return false }

// Close closes the directory.
func (r *Root) Close() error { return r.root.Close() }

// Buffer is the memory that List works in; one per worker.
type Buffer struct {
	entries []Entry
	Listing
}

// List returns the entries of the directory rel ("" is the root itself) in
// the order of the file system. The slice is valid until the next call with
// the same buffer.
func (r *Root) List(rel string, buf *Buffer) ([]Entry, error) {
	if rel == "" {
		rel = "."
	} else if err := r.want(rel, Dir); err != nil {
		return nil, err
	}
	dir, err := r.root.Open(rel)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	buf.entries = buf.entries[:0]
	for _, e := range entries {
		buf.entries = append(buf.entries, Entry{e.Name(), kindOf(e.Type())})
	}
	return buf.entries, err
}

func kindOf(m fs.FileMode) Kind {
	switch {
	case m.IsRegular():
		return File
	case m.IsDir():
		return Dir
	}
	return Other
}

func (r *Root) want(rel string, kind Kind) error {
	info, err := r.root.Lstat(rel)
	if err != nil {
		return err
	}
	if kindOf(info.Mode()) != kind {
		return &os.PathError{Op: "open", Path: rel, Err: ErrNotRegular}
	}
	return nil
}

// Handle is an open file. The zero value is not open.
type Handle struct{ f *os.File }

// Open opens the regular file rel without following links.
func (r *Root) Open(rel string) (Handle, error) {
	if err := r.want(rel, File); err != nil {
		return Handle{}, err
	}
	f, err := r.root.OpenFile(rel, os.O_RDONLY|privatefile.NoWait, 0)
	return Handle{f}, err
}

// OpenWithin is Open, but follows symbolic links that stay below the root.
func (r *Root) OpenWithin(rel string) (Handle, error) {
	info, err := r.root.Stat(rel)
	if err != nil {
		return Handle{}, err
	}
	if !info.Mode().IsRegular() {
		return Handle{}, &os.PathError{Op: "open", Path: rel, Err: ErrNotRegular}
	}
	f, err := r.root.OpenFile(rel, os.O_RDONLY|privatefile.NoWait, 0)
	return Handle{f}, err
}

// ReadAt reads like io.ReaderAt.
func (h Handle) ReadAt(p []byte, off int64) (int, error) { return h.f.ReadAt(p, off) }

// Close closes the file.
func (h Handle) Close() error { return h.f.Close() }

// Stat describes the open file.
func (h Handle) Stat() (Info, error) { return infoOf(h.f.Stat()) }

// Stat describes rel, a link itself and not what it points to.
func (r *Root) Stat(rel string) (Info, error) { return infoOf(r.root.Lstat(rel)) }

// Readlink returns the target of the link rel.
func (r *Root) Readlink(rel string) (string, error) { return r.root.Readlink(rel) }

// Lstat describes what is at a path, a link itself and not what it points to.
func Lstat(path string) (Info, error) { return infoOf(os.Lstat(path)) }

func infoOf(info fs.FileInfo, err error) (Info, error) {
	if err != nil {
		return Info{}, err
	}
	return Info{kindOf(info.Mode()), Stamp{Size: info.Size(), Change: info.ModTime().UnixNano()}, info.Mode()}, nil
}
