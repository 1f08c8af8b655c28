package settle

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Settled returns the path of a file with the content that counts for a host that reads its settings. That is the
// path itself, unless a running command has changed it: then it is the path of a copy of the former file, or "" if
// there was none. What a command writes counts once it is settled.
func (k *Keeper) Settled(path string) string {
	if p, rel := k.busy(path); p != nil {
		return p.settled(path, rel)
	}
	return path
}

// Planted reports whether a link that Lstat has found at a path was put there by a command that was running at that
// moment, so that it is settled once the command has ended, and whether it stands in the place of another link.
func (k *Keeper) Planted(path string, link fs.FileInfo) (planted, replaces bool) {
	now, err := os.Lstat(path)
	still := err == nil && stampOf(now) == stampOf(link)
	p, rel := k.busy(path)
	if p == nil { // what stands now has been settled
		return !still, err == nil && now.Mode()&fs.ModeSymlink != 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if classOf(rel) != Held || p.store.load(&p.rec) != nil || p.isOwn(rel) {
		return false, false
	}
	if h := p.rec.Held[rel]; h != nil && p.isIn(h) {
		return true, h.Former.isLink()
	}
	was, same := p.formerly(rel, link)
	if same || was == nil || !was.ID.isLink() {
		return !same, false
	}
	// A command may have touched the link of a person.
	to, err := os.Readlink(path)
	return !still || err != nil || linkIdentity(to) != was.ID, true
}

// busy returns the place that a path lies in, and its name there, if a command runs in the place.
func (k *Keeper) busy(path string) (*place, name) {
	k.mu.Lock()
	var busy []*place
	for _, p := range k.places {
		if p.store.running() {
			busy = append(busy, p)
		}
	}
	k.mu.Unlock()
	if len(busy) == 0 {
		return nil, ""
	}
	real := RealAbove(path)
	for _, p := range busy {
		if rel, ok := strings.CutPrefix(real, p.dir+string(filepath.Separator)); ok {
			return p, name(rel)
		}
	}
	return nil, ""
}

func (p *place) settled(path string, rel name) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if classOf(rel) != Held || p.store.load(&p.rec) != nil || p.isOwn(rel) {
		return path
	}
	if h := p.rec.Held[rel]; h != nil && p.isIn(h) {
		if h.Former == absent {
			return ""
		}
		return filepath.Join(p.store.dir, h.Slot)
	}
	info, err := os.Lstat(p.path(rel))
	if err != nil {
		info = nil
	}
	switch was, same := p.formerly(rel, info); {
	case was == nil:
		return ""
	case same, was.Copy == "":
		return path
	default:
		return filepath.Join(p.store.dir, was.Copy)
	}
}

// formerly returns what stood at a name before the running commands, nil if nothing did. same reports whether that is
// what was found now; found is nil if nothing stands there now.
func (p *place) formerly(rel name, found fs.FileInfo) (was *file, same bool) {
	look := func() bool {
		f, listed := p.rec.Files[rel]
		if was = nil; listed {
			was = &f
		}
		return listed && found != nil && stampOf(found) == f.Stamp
	}
	if same = look(); !same && p.asleep > 0 {
		p.alone(p.assign)
		same = look()
	}
	return was, same
}

// RealAbove follows the links of a path as far as what a command can replace: in the last two elements, which are those
// of a settings file, links stay.
func RealAbove(path string) string {
	dir := filepath.Dir(filepath.Dir(path))
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return filepath.Join(real, strings.TrimPrefix(path, dir))
	}
	return path
}
