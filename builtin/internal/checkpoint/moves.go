package checkpoint

import (
	"io/fs"
	"path"

	"github.com/toolhost/toolhost/builtin/internal/search/walk"
)

// What is in ignored directories is not kept, but a command may move a file from there into the workspace, or the
// other way. Then both names are told, as their content is known: else an undo would lose the file, or leave it
// twice.

// maxIgnored bounds the files in ignored directories whose names are known.
const maxIgnored = 100_000

// moves are the files in ignored directories, and what has moved since the last comparison.
type moves struct {
	names map[walk.ID]place
	// Of this comparison: files that appeared in ignored directories and in others, files that are gone from others, and
	// ignored directories that are new or gone.
	arrived, made, gone map[walk.ID]place
	newDirs, goneDirs   map[string]*entry
	madeDirs, leftDirs  map[walk.ID]bool // directories that appeared outside of ignored ones, or are gone from there
}

// place is where a file is or was.
type place struct {
	path   string
	change int64 // time of the last change of content: another file may get the same inode
	entry  *entry
}

func newMoves() moves {
	return moves{
		names: map[walk.ID]place{}, arrived: map[walk.ID]place{}, made: map[walk.ID]place{}, gone: map[walk.ID]place{},
		newDirs: map[string]*entry{}, goneDirs: map[string]*entry{},
		madeDirs: map[walk.ID]bool{}, leftDirs: map[walk.ID]bool{},
	}
}

// lookIgnored notes a file in an ignored directory.
func (t *Tracker) lookIgnored(path string, why scan) {
	info, err := t.files.root.Stat(path)
	if err != nil || info.Kind != walk.File && info.Mode&fs.ModeSymlink == 0 || info.Inode == 0 ||
		t.cfg.Hidden != nil && t.cfg.Hidden(t.cfg.Root+"/"+path, info) {
		return
	}
	id, here := walk.ID{Device: info.Device, Inode: info.Inode}, place{path: path, change: info.Change}
	if was, known := t.moves.names[id]; known && was == here || len(t.moves.names) >= maxIgnored {
		return
	}
	if why == scanAfter && t.events.marked() {
		t.moves.arrived[id] = here
		return
	}
	t.moves.names[id] = here
	t.saved.write(saved{Kind: savedIgnored, Path: path, Stamp: info.Stamp, Base: why == scanBase})
}

// note notes a file that has appeared outside of ignored directories, or is gone from there.
func (m *moves) note(in map[walk.ID]place, path string, e *entry) {
	if e.sub == nil && (e.state.Kind == File || e.state.Kind == Link) && e.stamp.Inode != 0 {
		in[idOf(e)] = place{path, e.stamp.Change, e}
	}
}

// match records the other names of what has moved. It is called at the end of a comparison.
func (t *Tracker) match() {
	m := &t.moves
	for id, new := range m.made {
		if old, ok := m.names[id]; ok && old.change == new.change && !t.isAt(old.path, id) {
			t.ancestors(old.path, m.goneDirs, true)
			t.files.contents.retain(new.entry.source)
			before := *new.entry
			before.scanned = 0
			t.record(old.path, &before, State{})
			delete(m.names, id)
		}
		if old, ok := m.gone[id]; ok && old.change == new.change && old.entry.why != "" && new.entry.why == "" {
			t.regain(old.path, new.entry)
		}
	}
	for id, old := range m.gone {
		if new, ok := m.arrived[id]; ok && new.change == old.change {
			t.ancestors(new.path, m.newDirs, false)
			t.record(new.path, nil, t.moved(old.entry.state, new.path))
		}
	}
	t.matchDirs()
	for id, new := range m.arrived {
		m.names[id] = place{path: new.path, change: new.change}
		t.saved.write(saved{Kind: savedIgnored, Path: new.path,
			Stamp: walk.Stamp{Device: id.Device, Inode: id.Inode, Change: new.change}})
	}
	names := m.names
	*m = newMoves()
	m.names = names
}

// moved is the state of a file that has moved to a path. Its mode may have changed too.
func (t *Tracker) moved(s State, path string) State {
	info, err := t.files.root.Stat(path)
	if err != nil || s.Kind != File {
		return s
	}
	s.Mode = modeOf(info)
	if s.Stamp != "" {
		s.Stamp = info.Name()
	}
	return s
}

// matchDirs records the other names of directories that have moved. Those with files that are not kept are left out:
// an undo would only say that it cannot remove them, or bring them back empty. Another directory may get the inode of
// one that is gone; it came or went with the command all the same.
func (t *Tracker) matchDirs() {
	m := &t.moves
	if moved := among(m.newDirs, m.leftDirs); len(moved) > 0 {
		drop(m.newDirs, m.arrived, func(id walk.ID, at place) bool { return m.gone[id].change != at.change })
		for _, name := range moved {
			t.ancestors(name+"/.", m.newDirs, false)
		}
	}
	if moved := among(m.goneDirs, m.madeDirs); len(moved) > 0 {
		drop(m.goneDirs, m.names, func(walk.ID, place) bool { return true })
		for _, name := range moved {
			t.ancestors(name+"/.", m.goneDirs, true)
		}
	}
}

// among returns the paths of the directories that have one of the IDs.
func among(dirs map[string]*entry, ids map[walk.ID]bool) (names []string) {
	for name, e := range dirs {
		if ids[idOf(e)] && e.stamp.Inode != 0 {
			names = append(names, name)
		}
	}
	return names
}

// drop removes the directories that hold one of some files.
func drop(dirs map[string]*entry, files map[walk.ID]place, some func(walk.ID, place) bool) {
	for id, at := range files {
		if some(id, at) {
			for dir := path.Dir(at.path); dir != "."; dir = path.Dir(dir) {
				delete(dirs, dir)
			}
		}
	}
}

// isAt reports whether a path still is a name of the file.
func (t *Tracker) isAt(path string, id walk.ID) bool {
	info, err := t.files.root.Stat(path)
	return err == nil && info.Device == id.Device && info.Inode == id.Inode
}

// stands reports whether there is something at a path.
func (t *Tracker) stands(path string) bool {
	_, err := t.files.root.Stat(path)
	return err == nil
}

// ancestors records the directories of a path that came or went with it. One that is no longer ignored has not gone.
func (t *Tracker) ancestors(name string, dirs map[string]*entry, gone bool) {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		e := dirs[dir]
		if e == nil || gone && t.stands(dir) {
			continue
		}
		delete(dirs, dir)
		if gone {
			t.record(dir, e, State{})
		} else {
			t.record(dir, nil, e.state)
		}
	}
}

// regain gives the recorded removal of a file that was not kept the content that it has under its new name.
func (t *Tracker) regain(path string, now *entry) {
	for i := range t.log {
		c := &t.log[i].change
		if c.Path == path && c.Why != "" && c.After.Kind == Absent && c.Before.Size == now.state.Size {
			mode := c.Before.Mode
			t.files.contents.retain(now.source)
			c.Why, c.source, c.Before = "", now.source, now.state
			c.Before.Mode = mode
		}
	}
}
