package settle

import (
	"os"
	"path/filepath"
	"strings"
)

// Settled returns the path of a file with the content that counts for a host that reads its settings. That is the
// path itself, unless a running command has changed it: then it is the path of a copy of the former file, or "" if
// there was none. What a command writes counts once it is settled.
func (k *Keeper) Settled(path string) string {
	k.mu.Lock()
	var busy []*place
	for _, p := range k.places {
		if p.store.running() {
			busy = append(busy, p)
		}
	}
	k.mu.Unlock()
	if len(busy) == 0 {
		return path
	}
	real := realAbove(path)
	for _, p := range busy {
		if rel, ok := strings.CutPrefix(real, p.dir+string(filepath.Separator)); ok {
			return p.settled(path, name(rel))
		}
	}
	return path
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
	was, listed := p.rec.Files[rel]
	info, err := os.Lstat(p.path(rel))
	same := err == nil && listed && stampOf(info) == was.Stamp
	if !same && p.asleep > 0 {
		p.alone(p.assign)
		was, listed = p.rec.Files[rel]
		same = listed && err == nil && stampOf(info) == was.Stamp
	}
	switch {
	case !listed:
		return ""
	case same, was.Copy == "":
		return path
	}
	return filepath.Join(p.store.dir, was.Copy)
}

// realAbove follows the links of a path as far as what a command can replace: in the last two elements, which are those
// of a settings file, links stay.
func realAbove(path string) string {
	dir := filepath.Dir(filepath.Dir(path))
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return filepath.Join(real, strings.TrimPrefix(path, dir))
	}
	return path
}
