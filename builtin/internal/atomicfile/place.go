package atomicfile

import (
	"errors"
	"io/fs"
	"os"
)

// Place replaces what has the name base, if anything, by a directory, a link or a file that create makes under a
// temporary name in dir. A directory that is not empty is not replaced. After an error base is unchanged. Only the
// field JournalDir of o is used.
func Place(dir *os.Root, base string, o Options, create func(name string) error) error {
	handle, err := openHandle(dir)
	if err != nil {
		return err
	}
	defer handle.Close()
	r := replacement{dir: dir, handle: handle, base: base, Options: Options{JournalDir: o.JournalDir}}
	t := r.newTemp()
	t.gone = false
	defer t.discard()
	if err := create(t.name); err != nil {
		return err
	}
	info, err := dir.Lstat(base)
	if errors.Is(err, fs.ErrNotExist) {
		return r.place(t)
	}
	if err != nil {
		return err
	}
	if err = errors.ErrUnsupported; !info.IsDir() { // files that another program puts into a directory must not move
		err = exchange(handle, t.name, base)
	}
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if err := dir.Remove(base); err != nil {
		return err
	}
	return renameIn(dir, t.name, base)
}
