package landlock

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/contract"
	"github.com/toolhost/toolhost/guard/sandbox/internal/place"
)

// Access allows reading everything that is not hidden, and changes in the writable paths. The names of hidden
// files stay visible. With scoped, processes outside are not reached by signals and abstract sockets.
func Access(pl *contract.Plan, scoped bool) (*Ruleset, error) {
	var scope uint64
	if scoped {
		scope = unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	r, err := newRuleset(Version(), readRights|writeRights, scope)
	if err != nil {
		return nil, err
	}
	const (
		device = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK // root's would be the disks
		use    = readRights | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	)
	r.allow(unix.LANDLOCK_ACCESS_FS_READ_DIR, "/")
	r.allow(readRights, readable(pl)...)
	r.allow(readRights|changeRights&^device, pathsOf(pl.Writable)...)
	r.allow(readRights, pathsOf(pl.Shown)...)
	for _, name := range contract.Devices { // no terminals: commands could read what is typed
		r.allow(use, "/dev/"+name)
	}
	r.allow(unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX, pl.Sockets...)
	return r.made()
}

func pathsOf(list []place.Object) (paths []string) {
	for _, t := range list {
		paths = append(paths, t.Path)
	}
	return paths
}

// readable lists what may be read: all entries of the directories above hidden paths, except these
// paths. /dev is hidden too, except a few devices. Paths inside a
// writable path cannot be hidden.
func readable(pl *contract.Plan) []string {
	hidden := map[string]bool{"/dev": true}
	onTheWay := map[string]bool{"/": true}
	for _, t := range slices.Concat(pl.Denied, pl.Masked) {
		if slices.ContainsFunc(pl.Writable, func(w place.Object) bool { return place.Within(t.Path, w.Path) }) {
			continue
		}
		hidden[t.Path] = true
		for dir := filepath.Dir(t.Path); dir != "/"; dir = filepath.Dir(dir) {
			onTheWay[dir] = true
		}
	}
	var list []string
	var visit func(dir string)
	visit = func(dir string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return // what we cannot read stays closed
		}
		for _, e := range entries {
			switch path := filepath.Join(dir, e.Name()); {
			case hidden[path], e.Type()&fs.ModeSymlink != 0:
			case onTheWay[path]:
				visit(path)
			default:
				list = append(list, path)
			}
		}
	}
	visit("/")
	return list
}

// Writes allows changes in the writable paths and to devices only. It
// repeats what the mounts say by a second, independent mechanism; without
// Landlock it is nil.
func Writes(pl *contract.Plan) (*Ruleset, error) {
	version := Version()
	if version < Minimum {
		return nil, nil
	}
	r, err := newRuleset(version, writeRights, 0) // abstract sockets are the network namespace's own
	if err != nil {
		return nil, err
	}
	r.allow(changeRights, pathsOf(pl.Writable)...)
	r.allow(changeRights, pl.Cached()...)
	for _, p := range pl.Private {
		r.allow(changeRights, p.Name)
	}
	r.allow(unix.LANDLOCK_ACCESS_FS_WRITE_FILE|unix.LANDLOCK_ACCESS_FS_TRUNCATE, "/dev")
	r.allow(changeRights, "/dev/shm")
	r.allow(unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX, pl.Sockets...)
	return r.made()
}
