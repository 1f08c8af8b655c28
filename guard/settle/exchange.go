package settle

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolhost/toolhost/guard/internal/chmodretry"
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

// swap exchanges a file with the one in a slot. was is the stamp that the file must have.
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

// replace puts the copy of a file that was taken away into its slot. If the file could not be copied, the slot
// becomes empty.
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
	return chmodretry.Do(root, ".", func() error { return f(side{root, filepath.Base(path)}) })
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

// isIn reports whether the held file stands at its name, and not the former one.
func (p *place) isIn(h *held) bool {
	id, _, err := identify(p.store.slots, h.Slot)
	switch {
	case err != nil:
		return false
	case h.Former == absent:
		return id == absent
	case h.Now == absent:
		return id != absent
	}
	return id == h.Former
}

func (p *place) anyIn() bool {
	for _, h := range p.rec.Held {
		if p.isIn(h) {
			return true
		}
	}
	return false
}

// enter exchanges held files in. What fails stays out: the command sees the former file.
func (p *place) enter() {
	order := slices.Sorted(maps.Keys(p.rec.Held))
	for _, removed := range []bool{true, false} { // a directory may stand in the place of a file
		for _, rel := range order {
			h := p.rec.Held[rel]
			if (h.Now == absent) != removed {
				continue
			}
			if p.stuck[rel] || p.ofTasks[rel] {
				continue
			}
			err := p.makeDirs(rel, h, true)
			if err == nil {
				err = p.move(rel, h, p.rec.Files[rel].Stamp)
			}
			switch {
			case errors.Is(err, errWritten) || errors.Is(err, fs.ErrExist) || missing(err):
				p.dropHeld(rel, h, "was changed by another program meanwhile, whose content stays")
			case err != nil:
				p.note("%s is held, and commands see the former file: %v.", name(p.path(rel)), err)
			}
		}
	}
}

// move exchanges the file at a name with the file in its slot. was is the stamp that the file must have. Directories
// that become empty are removed, unless they were there before the first command.
func (p *place) move(rel name, h *held, was stamp) error {
	slot := side{p.store.slots, h.Slot}
	_, err := slot.dir.Lstat(slot.name)
	empty := missing(err)
	err = inDir(p.path(rel), func(file side) error {
		info, err := file.dir.Lstat(file.name)
		switch {
		case err != nil && !missing(err):
			return err
		case err == nil && info.IsDir():
			if empty {
				return nil
			}
			if err := file.dir.Remove(file.name); err != nil { // a directory that a command made, and that is empty
				return err
			}
			return put(slot, file)
		case err != nil && empty:
			return nil
		case err != nil:
			return put(slot, file)
		case empty:
			if !was.sameFile(stampOf(info)) {
				return errWritten
			}
			return take(file, slot)
		}
		return swap(file, slot, was)
	})
	if err == nil && empty {
		p.prune(rel, h)
	}
	return err
}

// makeDirs makes the directories for the file in a slot. With marked, it makes only protected directories: if another
// one is missing, a person has removed it.
func (p *place) makeDirs(rel name, h *held, marked bool) error {
	if _, err := p.store.slots.Lstat(h.Slot); err != nil {
		return nil // the slot is empty
	}
	return inDir(filepath.Join(p.dir, filepath.Base(p.dir)), func(root side) error {
		return makeDirs(root.dir, filepath.Dir(string(rel)), func(dir string) bool { return !marked || isMarked(dir) })
	})
}

// prune removes the directories of a name that are empty: those of a new file that were not there before the first
// command, or those of a removed one that the command has removed.
func (p *place) prune(rel name, h *held) {
	for dir := filepath.Dir(string(rel)); dir != "."; dir = filepath.Dir(dir) {
		if h.Now == absent && (h.Gone == "" || len(dir) < len(h.Gone)) ||
			h.Now != absent && (p.rec.Dirs[name(dir)] || !isMarked(dir)) {
			return
		}
		if err := inDir(filepath.Join(p.dir, dir), func(d side) error { return d.dir.Remove(d.name) }); err != nil {
			return
		}
	}
}

// goneOf returns the outermost directory of a name that does not exist, or is a link or a file; "" if all exist.
func (p *place) goneOf(rel name) string {
	above := filepath.Dir(string(rel))
	if above == "." {
		return ""
	}
	for dir := range prefixes(above) {
		if info, err := os.Lstat(filepath.Join(p.dir, dir)); err != nil || !info.IsDir() {
			return dir
		}
	}
	return ""
}
