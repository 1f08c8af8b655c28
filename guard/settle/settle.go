package settle

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// A change is a protected name that a command has changed.
type change struct {
	rel name
	id  identity // what stands there now
	st  stamp
	h   *held // it was held before, and has been exchanged in

	fresh bool // it was not held before, or was held with another content
}

// settle compares every protected name with what stood there before the commands, and exchanges the former files back
// where what stands there is not known. What could not be settled is stuck. Names of tasks that run are left as they
// are.
func (p *place) settle() {
	now := p.scan()
	p.finishCopies(now)
	p.stuck = map[name]bool{}
	var holds []change
	var made []answer
	var prompts, kept []string
	for _, rel := range namesOf(&p.rec, now) {
		if p.ofTasks[rel] {
			continue
		}
		c, err := p.changeAt(rel, now)
		switch {
		case err != nil:
			p.note("The protected file %s could not be compared: %v. A command may have changed it: look at it.",
				name(p.path(rel)), err)
			p.stuck[rel] = true
			continue
		case c == nil:
			continue
		case classOf(rel) == Prompt:
			if p.rec.Files[rel].ID != c.id {
				prompts = append(prompts, rel.String())
			}
			err = p.renew(rel)
		case c.id == p.former(c):
			err = p.restored(c)
		case p.memory.known[rel][c.id], isSequencer(rel) && c.id == absent: // the rebase is over
			err = p.stays(c)
		case p.keep && !RowOf(filepath.ToSlash(string(rel))).Control:
			kept = append(kept, rel.String())
			if c.id.isKnowable() {
				made = append(made, answer{knownWord, rel, c.id})
			}
			err = p.stays(c)
		default:
			holds = append(holds, *c)
			if c.id != absent && c.id.isKnowable() && !p.memory.made[rel][c.id] {
				made = append(made, answer{madeWord, rel, c.id})
			}
		}
		if err != nil {
			p.note("%s: %v.", name(p.path(rel)), err)
			p.stuck[rel] = true
		}
	}
	if err := p.store.write(&p.memory, made); err != nil {
		p.note("It could not be recorded which protected files a command wrote: %v.", err)
	}
	p.hold(holds)
	if now.over {
		p.note("There are more than %d protected files: not all were compared. Remove those that a command has made.",
			maxLeaves)
		p.stuck[""] = true
	}
	p.noteAll("Changed by a command, kept because no question is asked in this mode: %s.", kept)
	p.noteAll("Changed by a command, and read by agents as instructions: %s.", prompts)
}

// changeAt returns the change of a name; nil if there is none.
func (p *place) changeAt(rel name, now scan) (*change, error) {
	was, h := p.rec.Files[rel], p.rec.Held[rel]
	st := now.leaves[rel]
	if h != nil && !p.isIn(h) {
		if st == was.Stamp && !was.Racy {
			return nil, nil
		}
		if id, _, err := p.at(rel); err == nil && id == h.Former {
			return nil, p.renew(rel)
		}
		p.dropHeld(rel, h, "was changed")
		h = nil
	}
	if h == nil && st == was.Stamp && !was.Racy {
		return nil, nil
	}
	id, st, err := p.at(rel)
	return &change{rel: rel, id: id, st: st, h: h}, err
}

// former returns the identity of what stood at a name before the commands.
func (p *place) former(c *change) identity {
	if c.h != nil {
		return c.h.Former
	}
	return p.rec.Files[c.rel].ID
}

// restored handles a name whose former content stands there again. A file that has got another name is replaced by a
// copy: a write to the other name would change it.
func (p *place) restored(c *change) error {
	was := p.rec.Files[c.rel]
	linked := c.id != absent && c.st.Names > 1 && (was.Stamp.Ino != c.st.Ino || was.Stamp.Names < c.st.Names)
	if c.h == nil && !linked {
		return p.renew(c.rel)
	}
	if c.h == nil {
		return errors.Join(p.detach(c), p.renew(c.rel))
	}
	if c.id != absent {
		if !p.isLikeSlot(c) { // the person's own file, with its times, goes back
			if err := p.move(c.rel, c.h, c.st); err != nil {
				return err
			}
		}
		if err := p.store.slots.Remove(c.h.Slot); err != nil {
			return err
		}
	}
	delete(p.rec.Held, c.rel)
	return errors.Join(p.renew(c.rel), p.store.save(&p.rec))
}

// isLikeSlot reports whether the file that a command has put at a name has the content, size and mode of the former
// file, and no other name. It stays then, because the index of git knows its times, and cherry-pick --abort depends
// on them.
func (p *place) isLikeSlot(c *change) bool {
	info, err := p.store.slots.Lstat(c.h.Slot)
	return err == nil && c.st.Names == 1 && c.st.Mode.IsRegular() && info.Mode() == c.st.Mode &&
		info.Size() == c.st.Size
}

// detach replaces a file that has other names by a copy that has none.
func (p *place) detach(c *change) error {
	own := &held{Slot: p.store.next(&p.rec, slotLetter)}
	err := inDir(p.path(c.rel), func(f side) error { return copyAs(f.dir, f.name, p.store.slots, own.Slot) })
	if err == nil {
		err = p.move(c.rel, own, c.st)
	}
	if err != nil {
		return err
	}
	return p.store.slots.Remove(own.Slot)
}

// stays records a change that is not held.
func (p *place) stays(c *change) error {
	if c.h != nil {
		delete(p.rec.Held, c.rel)
		if err := p.store.slots.Remove(c.h.Slot); err != nil && !missing(err) {
			return err
		}
	}
	if c.st.Names > 1 && c.st.Mode.IsRegular() {
		if err := p.detach(c); err != nil {
			return err
		}
	}
	return errors.Join(p.renew(c.rel), p.store.save(&p.rec))
}

// hold exchanges the former files back. The entries of the changes are on disk before that.
func (p *place) hold(changes []change) {
	for i := range changes {
		c := &changes[i]
		if c.h == nil {
			c.h = &held{Slot: p.store.next(&p.rec, slotLetter), Former: p.rec.Files[c.rel].ID}
			if err := p.fill(c.h, c); err != nil {
				p.note("%s was changed by a command, and its former content could not be copied: %v. Look at it.",
					name(p.path(c.rel)), err)
				p.stuck[c.rel], c.h = true, nil
				continue
			}
			p.rec.Held[c.rel], c.fresh = c.h, true
		}
		c.fresh = c.fresh || c.h.Now != c.id
		if c.h.Now, c.h.Gone = c.id, ""; c.id == absent {
			c.h.Gone = p.goneOf(c.rel)
		}
	}
	if len(changes) > 0 {
		if err := p.store.save(&p.rec); err != nil {
			p.note("The list of held files could not be written: %v. If this host is killed, they are in %s.", err,
				p.store.dir)
		}
	}
	p.leave(changes)
	if len(changes) > 0 {
		_ = p.store.save(&p.rec) // the next command reads what stands there once more
	}
	p.noteHeld(changes)
}

// fill puts a copy of the former file of a name into a slot.
func (p *place) fill(h *held, c *change) error {
	was := p.rec.Files[c.rel]
	if was.ID == absent || was.Copy == "" {
		h.Former = absent // there is no copy of a pipe or an unreadable file
		return nil
	}
	if was.Stamp.Names > 1 && was.Stamp.Ino == c.st.Ino && c.id != was.ID {
		return p.rewrite(h, c)
	}
	err := copyAs(p.store.slots, was.Copy, p.store.slots, h.Slot)
	if err == nil || !errors.Is(err, fs.ErrExist) && p.store.slots.Rename(was.Copy, h.Slot) != nil {
		return err
	}
	was.Copy = "" // the disk may be full
	p.rec.Files[c.rel] = was
	return nil
}

// leave exchanges the former files back: first what is new, the innermost first, then what was changed, then what was
// removed.
func (p *place) leave(changes []change) {
	slices.SortFunc(changes, func(a, b change) int { return strings.Compare(string(b.rel), string(a.rel)) })
	for _, step := range []func(h *held) bool{
		func(h *held) bool { return h.Former == absent },
		func(h *held) bool { return h.Former != absent && h.Now != absent },
		func(h *held) bool { return h.Former != absent && h.Now == absent },
	} {
		for _, c := range changes {
			if c.h == nil || !step(c.h) {
				continue
			}
			err := p.makeDirs(c.rel, c.h, false)
			if err == nil {
				err = p.move(c.rel, c.h, c.st)
			}
			if err == nil {
				err = p.renew(c.rel)
			}
			if err != nil {
				p.note("%s was changed by a command, and the former file could not be put back: %v. Look at it.",
					name(p.path(c.rel)), err)
				p.stuck[c.rel] = true
			}
		}
	}
}

// finishCopies removes or completes what a host left that was killed while it copied between file systems.
func (p *place) finishCopies(now scan) {
	for rel, h := range p.rec.Held {
		_ = inDir(p.path(rel), func(f side) error {
			outer := side{f.dir, copyPrefix + h.Slot}
			fresh := side{p.store.slots, h.Slot + freshSuffix}
			live, _, err := identify(f.dir, f.name)
			slot, _, slotErr := identify(p.store.slots, h.Slot)
			if err == nil && slotErr == nil && live == slot && live != absent {
				// The host was killed between the exchange and the rename of the copy.
				_ = fresh.dir.Rename(fresh.name, h.Slot)
			}
			return outer.dir.Remove(outer.name)
		})
	}
	for _, path := range now.litter {
		_ = inDir(path, func(f side) error { return f.dir.Remove(f.name) })
	}
}

// maxNamed bounds the names in a note.
const maxNamed = 20

func (p *place) noteAll(format string, names []string) {
	if over := len(names) - maxNamed; over > 0 {
		names = append(names[:maxNamed:maxNamed], fmt.Sprintf("and %d more", over))
	}
	if len(names) > 0 {
		p.note(format, strings.Join(names, ", "))
	}
}

// KeepRemedy ends the note about files that a command has changed and that are held. It does not apply once a person
// has answered.
const KeepRemedy = " Tell the user: `toolhost keep` shows and keeps them."

// noteHeld names what is held now, and in full what was not held before.
func (p *place) noteHeld(changes []change) {
	var fresh, others []string
	for _, c := range slices.Backward(changes) {
		switch {
		case c.h == nil:
		case c.fresh:
			fresh = append(fresh, fmt.Sprintf("%s (%s)", c.rel, c.h.state()))
			p.fresh = append(p.fresh, c.rel)
		default:
			others = append(others, c.rel.String())
		}
	}
	p.noteAll("Protected files are held until a person answers: %s. Commands see them as they are now; "+
		"outside of commands the former files stand."+KeepRemedy, fresh)
	p.noteAll("Still held: %s.", others)
}
