package namespaces

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/contract"
	"github.com/toolhost/toolhost/guard/sandbox/internal/place"
)

// Names in the mask's file system.
const (
	maskFile    = "f"
	maskDir     = "d"
	maskProgram = "p"
)

// mask is a file system, mounted at no name of its own, with the objects that
// cover what is hidden: a file and a directory of mode 000, and for each masked
// directory with exceptions a directory that contains only these.
// The cover of a program may be executed, because shells do not try
// a file without that permission: an attempt is then judged, and refused by name.
//
// A mode does not stop commands with root's powers, see findOwners. For them a file is covered by the file "mem" of
// process 1 in proc, and a directory by its "map_files": the kernel opens these only for a process that may trace
// process 1, and no command may.
type mask struct {
	fd        int
	proc      int               // the directory of process 1 in proc, or -1
	devs      []uint64          // the file systems of the covers
	skeletons map[string]string // masked directory → its name here
}

func newMask(pl *contract.Plan) (*mask, error) {
	fd, err := newFileSystem("tmpfs", map[string]string{"mode": "0755"},
		unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making the mask: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	m := &mask{fd: fd, proc: -1, devs: []uint64{st.Dev}, skeletons: make(map[string]string)}
	if pl.Owners {
		if m.proc, err = unix.Open("/proc/self", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
			return nil, fmt.Errorf("making the mask: /proc/self: %w", err)
		}
		if err := unix.Fstat(m.proc, &st); err != nil {
			return nil, err
		}
		m.devs = append(m.devs, st.Dev)
	}
	if err := unix.Mkdirat(fd, maskDir, 0); err != nil {
		return nil, fmt.Errorf("making the mask: %w", err)
	}
	if err := createFile(fd, maskFile, 0); err != nil {
		return nil, fmt.Errorf("making the mask: %w", err)
	}
	if err := createFile(fd, maskProgram, 0o111); err != nil {
		return nil, fmt.Errorf("making the mask: %w", err)
	}
	if err := m.addSkeletons(pl); err != nil {
		return nil, err
	}
	// Read-only, or its owner could open it with chmod.
	return m, unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

// addSkeletons makes the directories in masked directories that lead to paths that are shown or
// writable.
func (m *mask) addSkeletons(pl *contract.Plan) error {
	exceptions := slices.Concat(pl.Writable, pl.Shown)
	for _, f := range pl.Files {
		exceptions = append(exceptions, place.Object{Path: f.Path})
	}
	for i, dir := range pl.Masked {
		for _, e := range exceptions {
			if !dir.Dir || !place.Below(e.Path, dir.Path) {
				continue
			}
			name, ok := m.skeletons[dir.Path]
			if !ok {
				name = "s" + strconv.Itoa(i)
				m.skeletons[dir.Path] = name
				if err := m.mkdir(name); err != nil {
					return fmt.Errorf("making the mask of %s: %w", dir.Path, err)
				}
			}
			if err := m.lead(name, strings.TrimPrefix(e.Path, dir.Path+"/"), e.Dir); err != nil {
				return fmt.Errorf("making a way to %s through the mask: %w", e.Path, err)
			}
		}
	}
	return nil
}

// lead creates rel, a directory or a file, below the skeleton.
func (m *mask) lead(skeleton, rel string, dir bool) error {
	path := skeleton
	for part := range strings.SplitSeq(filepath.Dir(rel), "/") {
		if path = filepath.Join(path, part); part == "." {
			continue
		}
		if err := m.mkdir(path); err != nil {
			return err
		}
	}
	path = filepath.Join(skeleton, rel)
	if dir {
		return m.mkdir(path)
	}
	if err := createFile(m.fd, path, 0); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return nil
}

func (m *mask) mkdir(path string) error {
	// Writable for process 1 while it builds; the mount is read-only afterwards.
	if err := unix.Mkdirat(m.fd, path, 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return nil
}

// cover opens a detached copy of what hides t.
func (m *mask) cover(t place.Object) (int, error) {
	name := maskFile
	if t.Dir {
		name = maskDir
	}
	if s, ok := m.skeletons[t.Path]; ok {
		name = s
	}
	return m.open(name, t)
}

// coverProgram is cover for a program.
func (m *mask) coverProgram(t place.Object) (int, error) {
	fd, err := m.open(maskProgram, t)
	if err != nil {
		return -1, err
	}
	err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_NOEXEC})
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("making the mask of %s: %w", t.Path, err)
	}
	return fd, nil
}

// open opens a detached copy of an object of the mask, which is to hide t.
func (m *mask) open(name string, t place.Object) (int, error) {
	dir := m.fd
	if m.proc >= 0 && (name == maskFile || name == maskDir) {
		dir, name = m.proc, map[string]string{maskFile: "mem", maskDir: "map_files"}[name]
	}
	fd, err := unix.OpenTree(dir, name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("making the mask of %s: %w", t.Path, err)
	}
	return fd, nil
}

// is reports whether dev is the file system of a cover.
func (m *mask) is(dev uint64) bool { return slices.Contains(m.devs, dev) }

// verify checks the finished view as a command sees it: every path that must be hidden is, and
// every path that must be read-only.
func (v *View) verify() error {
	for _, t := range slices.Concat(v.plan.Denied, v.plan.Masked, v.plan.Programs) {
		if err := v.verifyHidden(t); err != nil {
			return err
		}
	}
	shut := []string{"/", "/proc", "/sys"}
	for _, f := range v.plan.Files {
		shut = append(shut, f.Path)
	}
	for _, t := range v.plan.ReadOnly {
		shut = append(shut, t.Path)
	}
	for _, path := range shut {
		if err := verifyReadOnly(path); err != nil {
			return err
		}
	}
	return nil
}

// verifyHidden reports an error unless a command finds the mask, or nothing.
func (v *View) verifyHidden(t place.Object) error {
	var st unix.Stat_t
	err := unix.Lstat(t.Path, &st)
	switch {
	case place.Absent(err):
		return nil
	case err != nil:
		return fmt.Errorf("looking at %s: %w", t.Path, err)
	case !v.mask.is(st.Dev):
		return fmt.Errorf("%s is still visible after it was masked", t.Path)
	}
	return nil
}

func verifyReadOnly(path string) error {
	var st unix.Statfs_t
	err := unix.Statfs(path, &st)
	switch {
	case place.Absent(err):
		return nil
	case err != nil:
		return fmt.Errorf("looking at %s: %w", path, err)
	case st.Flags&unix.ST_RDONLY == 0:
		return fmt.Errorf("%s is still writable", path)
	}
	return nil
}
