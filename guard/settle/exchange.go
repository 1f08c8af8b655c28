package settle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/toolhost/toolhost/guard/internal/realpath"
)

// errWritten reports that another program wrote a file while it was exchanged; it has been left as that program wrote
// it.
var errWritten = errors.New("another program wrote it at the same moment")

// A side is a name in an opened directory.
type side struct {
	dir  *os.Root
	name string
}

// Suffixes and prefixes of names for copies between file systems. A killed host leaves them; [place.finishCopies]
// removes them.
const (
	freshSuffix = ".new"            // of a slot
	copyPrefix  = ".toolhost-held-" // of a copy of a slot, in the directory of the file
)

// take moves a file into an empty slot.
func take(file, slot side) error {
	err := rename(file, slot)
	if !needsCopy(err) {
		return err
	}
	fresh := side{slot.dir, slot.name + freshSuffix}
	_ = fresh.dir.Remove(fresh.name) // of a killed host
	if err := copyAs(file.dir, file.name, fresh.dir, fresh.name); err != nil && !errors.Is(err, errOdd) {
		return err
	} else if err == nil {
		if err := slot.dir.Rename(fresh.name, slot.name); err != nil {
			return err
		}
	}
	return file.dir.Remove(file.name)
}

// put moves a file from a slot to a name where nothing stands.
func put(slot, file side) error {
	err := rename(slot, file)
	if !needsCopy(err) {
		return err
	}
	outer := side{file.dir, copyPrefix + slot.name}
	_ = outer.dir.Remove(outer.name)
	if err := copyAs(slot.dir, slot.name, outer.dir, outer.name); err != nil {
		return err
	}
	if err := renameIn(outer, file.name); err != nil {
		return errors.Join(err, outer.dir.Remove(outer.name))
	}
	return slot.dir.Remove(slot.name)
}

// swap exchanges a file, which has a stamp, with the one in a slot.
func swap(file, slot side, was stamp) error {
	err := exchange(file, slot)
	if err == nil {
		if info, err := slot.dir.Lstat(slot.name); err == nil && !was.sameFile(stampOf(info)) {
			return errors.Join(errWritten, exchange(file, slot))
		}
		return nil
	}
	if !needsCopy(err) {
		return err
	}
	outer, fresh := side{file.dir, copyPrefix + slot.name}, side{slot.dir, slot.name + freshSuffix}
	_, _ = outer.dir.Remove(outer.name), fresh.dir.Remove(fresh.name)
	if err := copyAs(slot.dir, slot.name, outer.dir, outer.name); err != nil {
		return err
	}
	if err := copyAs(file.dir, file.name, fresh.dir, fresh.name); err != nil && !errors.Is(err, errOdd) {
		return errors.Join(err, outer.dir.Remove(outer.name))
	}
	if err := exchange(outer, file); err == nil {
		if info, err := outer.dir.Lstat(outer.name); err == nil && !was.sameFile(stampOf(info)) {
			return errors.Join(errWritten, exchange(outer, file), outer.dir.Remove(outer.name),
				fresh.dir.Remove(fresh.name))
		}
		err = errors.Join(replace(fresh, slot), outer.dir.Remove(outer.name))
		return err
	} else if !needsCopy(err) {
		return errors.Join(err, outer.dir.Remove(outer.name))
	}
	if err := outer.dir.Rename(outer.name, file.name); err != nil {
		return errors.Join(err, outer.dir.Remove(outer.name))
	}
	return replace(fresh, slot)
}

// replace puts the copy of what has left a name into its slot. Of a file that cannot be copied nothing is kept.
func replace(fresh, slot side) error {
	err := slot.dir.Rename(fresh.name, slot.name)
	if missing(err) {
		return slot.dir.Remove(slot.name)
	}
	return err
}

// sameFile reports whether a stamp is that of the same file with the same content. A rename changes the time of change.
func (s stamp) sameFile(other stamp) bool {
	return s.Dev == other.Dev && s.Ino == other.Ino && s.Mode == other.Mode &&
		s.Size == other.Size && s.Modified == other.Modified
}

// inDir calls f with the directory of a path opened, without following a link. If a command has removed the permission
// to write there, the owner gets it for as long as that takes.
func inDir(path string, f func(file side) error) error {
	dir := filepath.Dir(path)
	root, err := realpath.OpenDir(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	err = f(side{root, filepath.Base(path)})
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	info, statErr := root.Stat(".")
	if statErr != nil || root.Chmod(".", info.Mode().Perm()|0o700) != nil {
		return err
	}
	return errors.Join(f(side{root, filepath.Base(path)}), root.Chmod(".", info.Mode().Perm()))
}

// makeDirs makes a directory below an existing one, and those above it, as far as they may be made.
func makeDirs(root *os.Root, rel string, may func(dir string) bool) error {
	if rel == "." {
		return nil
	}
	for at := range prefixes(rel) {
		info, err := root.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist) && may(at):
			err = root.Mkdir(at, 0o755)
		case err == nil && !info.IsDir():
			err = fmt.Errorf("%s is not a directory any more", filepath.Join(root.Name(), at))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// prefixes yields the paths of the directories of a relative path, the outermost first, and the path itself.
func prefixes(rel string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i := range len(rel) + 1 {
			if (i == len(rel) || rel[i] == filepath.Separator) && !yield(rel[:i]) {
				return
			}
		}
	}
}
