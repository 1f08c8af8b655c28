package contract

import (
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/place"
)

// A Plan is a policy resolved against the file system: what to do with which object. The process inside carries it out
// without resolving a name again.
type Plan struct {
	// Writable paths may be changed, but not the ReadOnly paths in them. Denied and Masked paths are hidden; Shown
	// and Writable paths in Masked ones are not. Programs are not started.
	Writable, ReadOnly, Denied, Masked, Shown, Programs []place.Object
	// Private directories take the places of others, and Files of files. Caches are directories that commands write into
	// a layer.
	Private []Private
	Caches  []Cache
	Files   []Copy
	// Pins are directories and links whose names must not change, and Sockets those of the host that stay reachable.
	Pins, Sockets []string
	// Network says that the host's is shared.
	Network bool
	// Judged says that the host makes the connections of commands (package connectgate), and Execs that it judges which
	// programs they start (package execgate).
	Judged, Execs bool
	// Writes says that the host is told of changes of files, see WriteGate of package sandbox.
	Writes bool
	// Owners says that commands have [OwnerPowers].
	Owners bool
	// Processes is the highest process number.
	Processes int
	// Overlay is the bytes of changes that are dropped; 0: changes are real. Temporary are directories that are empty
	// where there are no overlays.
	Overlay   int64
	Temporary []string
	// Named says that commands have a resolver. It is not sent: process 1 finds out by itself.
	Named bool
}

// OwnerPowers are the capabilities of root's commands over files of the owners of its workspace. As in every user
// namespace, they count only for files whose user and group have a number in it.
const OwnerPowers = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER

// A Private directory is one that commands have in the place of the host's.
type Private struct {
	Name    string
	Dir     place.Object   // what takes its place
	Entries []place.Object // of the host, by their names there
}

// A Cache has what commands see, the layer that they write, and an empty directory that the kernel needs.
type Cache struct{ Lower, Upper, Work place.Object }

// A Copy is what commands read at the name of a file.
type Copy struct {
	Path    string
	Mode    uint32
	Content string
}

// Cached returns the caches with an overlay.
func (pl *Plan) Cached() []string {
	var names []string
	for _, o := range pl.Caches {
		names = append(names, o.Lower.Path)
	}
	return names
}

// Write writes the plan for process 1.
func (pl *Plan) Write(w io.Writer) error {
	e := &encoder{}
	pl.encode(e)
	_, err := w.Write(e.buf)
	return err
}

// ReadPlan reads what [Plan.Write] has written, to its end.
func ReadPlan(r io.Reader) (*Plan, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("reading the plan: %w", err)
	}
	d := &decoder{buf: data}
	pl := decodePlan(d)
	if d.err != nil {
		return nil, fmt.Errorf("reading the plan: %w", d.err)
	}
	return pl, nil
}

func (pl *Plan) encode(e *encoder) {
	for _, list := range [][]place.Object{pl.Writable, pl.ReadOnly, pl.Denied, pl.Masked, pl.Shown, pl.Programs} {
		e.objects(list)
	}
	e.uint(uint64(len(pl.Private)))
	for _, p := range pl.Private {
		e.str(p.Name)
		e.objects([]place.Object{p.Dir})
		e.objects(p.Entries)
	}
	e.uint(uint64(len(pl.Caches)))
	for _, o := range pl.Caches {
		e.objects([]place.Object{o.Lower, o.Upper, o.Work})
	}
	e.uint(uint64(len(pl.Files)))
	for _, f := range pl.Files {
		e.str(f.Path)
		e.uint(uint64(f.Mode))
		e.str(f.Content)
	}
	e.strs(pl.Pins)
	e.strs(pl.Sockets)
	e.bool(pl.Network)
	e.bool(pl.Judged)
	e.bool(pl.Execs)
	e.bool(pl.Writes)
	e.bool(pl.Owners)
	e.uint(uint64(pl.Processes))
	e.uint(uint64(pl.Overlay))
	e.strs(pl.Temporary)
}

func decodePlan(d *decoder) *Plan {
	pl := &Plan{}
	for _, list := range []*[]place.Object{&pl.Writable, &pl.ReadOnly, &pl.Denied, &pl.Masked, &pl.Shown, &pl.Programs} {
		*list = d.objects()
	}
	for n := d.uint(); n > 0 && d.err == nil; n-- {
		p := Private{Name: d.str()}
		if dir := d.objects(); len(dir) == 1 {
			p.Dir = dir[0]
		} else {
			d.err = ErrMalformed
		}
		p.Entries = d.objects()
		pl.Private = append(pl.Private, p)
	}
	for n := d.uint(); n > 0 && d.err == nil; n-- {
		if dirs := d.objects(); len(dirs) == 3 {
			pl.Caches = append(pl.Caches, Cache{dirs[0], dirs[1], dirs[2]})
		} else {
			d.err = ErrMalformed
		}
	}
	for n := d.uint(); n > 0 && d.err == nil; n-- {
		pl.Files = append(pl.Files, Copy{Path: d.str(), Mode: uint32(d.uint()), Content: d.str()})
	}
	pl.Pins = d.strs()
	pl.Sockets = d.strs()
	pl.Network = d.bool()
	pl.Judged = d.bool()
	pl.Execs = d.bool()
	pl.Writes = d.bool()
	pl.Owners = d.bool()
	pl.Processes = int(d.uint())
	pl.Overlay = int64(d.uint())
	pl.Temporary = d.strs()
	return pl
}
