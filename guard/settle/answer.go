package settle

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
)

// heldFiles returns the held files by name.
func (p *place) heldFiles() (list []File) {
	for _, rel := range slices.Sorted(maps.Keys(p.rec.Held)) {
		list = append(list, p.heldFile(rel, p.rec.Held[rel]))
	}
	return list
}

func (p *place) heldFile(rel name, h *held) File {
	f := File{Dir: p.dir, Path: p.path(rel), State: h.state()}
	if _, err := p.store.slots.Lstat(h.Slot); err == nil {
		f.Aside = filepath.Join(p.store.dir, h.Slot)
	}
	return f
}

// state says what a command has done to a held file.
func (h *held) state() string {
	switch absent {
	case h.Former:
		return "new"
	case h.Now:
		return "removed"
	}
	return "changed"
}

// keepFile has a held file stay: at once if no command runs, else when the last has ended.
func (p *place) keepFile(rel name, alone bool) error {
	h := p.rec.Held[rel]
	if err := p.store.write(&p.memory, []answer{{knownWord, rel, h.Now}}); err != nil || !alone {
		return err
	}
	if id, st, err := p.at(rel); err != nil {
		return err
	} else if id != h.Former {
		return fmt.Errorf("%s was changed meanwhile: look at it, and at %s", p.path(rel),
			filepath.Join(p.store.dir, h.Slot))
	} else if err := errors.Join(p.makeDirs(rel, h, true), p.move(rel, h, st)); err != nil {
		return err
	}
	delete(p.rec.Held, rel)
	if err := p.renew(rel); err != nil {
		return err
	}
	if _, err := p.store.drop(h.Slot, rel); err != nil && !missing(err) {
		return err
	}
	return nil
}

// refuseFile drops a held file.
func (p *place) refuseFile(rel name, alone bool) error {
	if !alone {
		return fmt.Errorf("%s: commands run, which see it; refuse it when they have ended", p.path(rel))
	}
	h := p.rec.Held[rel]
	delete(p.rec.Held, rel)
	if _, err := p.store.drop(h.Slot, rel); err != nil && !missing(err) {
		return err
	}
	return nil
}
