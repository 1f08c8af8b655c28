package sandbox

import "github.com/toolhost/toolhost/guard/sandbox/internal/place"

// plan is a Policy resolved against the file system: what to do with which
// object. Process 1 carries it out without resolving a name again.
type plan struct {
	writable, readOnly, denied, masked, shown, programs []place.Object
	private                                             []private
	caches                                              []cacheLayer
	files                                               []fileCopy
	pins                                                []string // directories and links whose names must not change
	sockets                                             []string // sockets of the host that stay reachable
	network                                             bool     // the host's network is shared
	judged                                              bool     // the host makes the connections of commands, see connector
	execs                                               bool     // the host judges which programs commands start, see execgate.Gate
	owners                                              bool     // commands have root's powers over files of others, see findOwners
	processes                                           int      // the highest process number
	overlay                                             int64    // the bytes of changes that are dropped; 0: changes are real
	temporary                                           []string // empty directories where there are no overlays
	named                                               bool     // commands have a resolver; process 1 finds out
}

// private is a Private directory.
type private struct {
	name    string
	dir     place.Object   // what takes its place
	entries []place.Object // of the host, by their names there
}

// cacheLayer is a Cache.
type cacheLayer struct{ lower, upper, work place.Object }

// encode writes the plan for process 1.
func (pl *plan) encode(e *encoder) {
	for _, list := range [][]place.Object{pl.writable, pl.readOnly, pl.denied, pl.masked, pl.shown, pl.programs} {
		encodeTargets(e, list)
	}
	e.uint(uint64(len(pl.private)))
	for _, p := range pl.private {
		e.str(p.name)
		encodeTargets(e, []place.Object{p.dir})
		encodeTargets(e, p.entries)
	}
	e.uint(uint64(len(pl.caches)))
	for _, o := range pl.caches {
		encodeTargets(e, []place.Object{o.lower, o.upper, o.work})
	}
	e.uint(uint64(len(pl.files)))
	for _, f := range pl.files {
		e.str(f.path)
		e.uint(uint64(f.mode))
		e.str(f.content)
	}
	e.strs(pl.pins)
	e.strs(pl.sockets)
	e.bool(pl.network)
	e.bool(pl.judged)
	e.bool(pl.execs)
	e.bool(pl.owners)
	e.uint(uint64(pl.processes))
	e.uint(uint64(pl.overlay))
	e.strs(pl.temporary)
}

func decodePlan(d *decoder) *plan {
	pl := &plan{}
	for _, list := range []*[]place.Object{&pl.writable, &pl.readOnly, &pl.denied, &pl.masked, &pl.shown, &pl.programs} {
		*list = decodeTargets(d)
	}
	for n := d.uint(); n > 0 && d.err == nil; n-- {
		p := private{name: d.str()}
		if dir := decodeTargets(d); len(dir) == 1 {
			p.dir = dir[0]
		} else {
			d.err = errMalformed
		}
		p.entries = decodeTargets(d)
		pl.private = append(pl.private, p)
	}
	for n := d.uint(); n > 0 && d.err == nil; n-- {
		if dirs := decodeTargets(d); len(dirs) == 3 {
			pl.caches = append(pl.caches, cacheLayer{dirs[0], dirs[1], dirs[2]})
		} else {
			d.err = errMalformed
		}
	}
	for n := d.uint(); n > 0 && d.err == nil; n-- {
		pl.files = append(pl.files, fileCopy{path: d.str(), mode: uint32(d.uint()), content: d.str()})
	}
	pl.pins = d.strs()
	pl.sockets = d.strs()
	pl.network = d.bool()
	pl.judged = d.bool()
	pl.execs = d.bool()
	pl.owners = d.bool()
	pl.processes = int(d.uint())
	pl.overlay = int64(d.uint())
	pl.temporary = d.strs()
	return pl
}

func encodeTargets(e *encoder, list []place.Object) {
	e.uint(uint64(len(list)))
	for _, t := range list {
		e.str(t.Path)
		e.uint(t.Dev)
		e.uint(t.Ino)
		e.bool(t.Dir)
	}
}

func decodeTargets(d *decoder) []place.Object {
	n := d.uint()
	if n > uint64(len(d.buf)) {
		d.err = errMalformed
		return nil
	}
	list := make([]place.Object, 0, n)
	for range n {
		t := place.Object{Path: d.str()}
		t.Dev, t.Ino = d.uint(), d.uint()
		t.Dir = d.bool()
		list = append(list, t)
	}
	return list
}
