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
	// Named says that commands have a resolver. Process 1 finds out by itself.
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
	_, err := w.Write(encode(*pl))
	return err
}

// ReadPlan reads what [Plan.Write] has written, to its end.
func ReadPlan(r io.Reader) (*Plan, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("reading the plan: %w", err)
	}
	pl := &Plan{}
	if err := decode(data, pl); err != nil {
		return nil, fmt.Errorf("reading the plan: %w", err)
	}
	return pl, nil
}
