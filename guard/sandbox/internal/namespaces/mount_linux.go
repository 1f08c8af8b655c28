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

const (
	attrShut = unix.MOUNT_ATTR_RDONLY | attrOpen
	attrOpen = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
)

// A View is the file system as commands see it, while process 1 builds it and
// later.
type View struct {
	plan        *contract.Plan
	mask        *mask
	overmounted map[string]int // writable path → descriptor of the read-only directory under it
	hosts       map[string]int // name of a private directory → descriptor of the host's
	refreshed   []int          // descriptors of overlays
	NoOverlay   error          // why a directory has none
}

// attachment is a detached copy of a mount, to be put at target.
type attachment struct {
	place.Object
	fd int
}

// Build makes the file system of process 1 what the plan says. It must run on a
// thread with CAP_SYS_ADMIN in the sandbox's user namespace, before any command.
func Build(pl *contract.Plan) (*View, error) {
	v := &View{plan: pl, overmounted: make(map[string]int), hosts: make(map[string]int)}
	// Later mounts of the host must not appear here, writable and without masks.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("detaching the mounts from the host's: %w", err)
	}
	var err error
	if v.mask, err = newMask(pl); err != nil {
		return nil, err
	}
	// Copies are taken while the tree is as the host has it.
	copies, err := v.copies()
	if err != nil {
		return nil, err
	}
	nodes, err := copyDevices()
	if err != nil {
		return nil, err
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE,
		&unix.MountAttr{Attr_set: attrShut}); err != nil {
		return nil, fmt.Errorf("making the file system read-only: %w", err)
	}
	if err := v.overmount(); err != nil {
		return nil, err
	}
	if err := mountProc(pl.Processes); err != nil {
		return nil, err
	}
	if err := mountDev(nodes); err != nil {
		return nil, err
	}
	if err := v.attachAll(copies); err != nil {
		return nil, err
	}
	if err := unix.Chdir("/"); err != nil { // the old one refers to the tree below
		return nil, err
	}
	return v, v.verify()
}

// copies opens detached copies of everything that is mounted at its own place
// with other rights than the read-only root, and of the masks.
func (v *View) copies() ([]attachment, error) {
	list, err := v.privates()
	if err != nil {
		return nil, err
	}
	writable := v.plan.Writable
	if v.plan.Overlay > 0 {
		overlays, err := v.overlays()
		if err != nil {
			return nil, err
		}
		list, writable = append(overlays, list...), nil
	}
	list = append(list, v.caches()...)
	for _, k := range []struct {
		targets []place.Object
		attr    uint64
	}{{writable, attrOpen}, {v.plan.ReadOnly, attrShut}, {v.plan.Shown, attrShut}} {
		for _, t := range k.targets {
			fd, err := copyMount(t.Path, k.attr)
			if err != nil {
				return nil, err
			}
			if err := sameObject(fd, t); err != nil {
				return nil, err
			}
			list = append(list, attachment{t, fd})
		}
	}
	files := v.plan.Files
	if v.plan.Named {
		files = append(slices.Clip(files), NameContents()...)
	}
	replaced, err := fileCopies(files)
	if err != nil {
		return nil, err
	}
	list = append(list, replaced...)
	for _, t := range v.plan.Masked {
		fd, err := v.mask.cover(t)
		if err != nil {
			return nil, err
		}
		list = append(list, attachment{t, fd})
	}
	for _, t := range v.plan.Programs {
		fd, err := v.mask.coverProgram(t)
		if err != nil {
			return nil, err
		}
		list = append(list, attachment{t, fd})
	}
	// Parents first, so that the deeper path decides. At one path the later kind
	// is mounted last: a mask covers everything else.
	slices.SortStableFunc(list, func(a, b attachment) int { return strings.Compare(a.Path, b.Path) })
	return list, nil
}

// privates opens copies of the private directories, and of what is seen of the host in them.
func (v *View) privates() ([]attachment, error) {
	var list []attachment
	for _, p := range v.plan.Private {
		if v.plan.Overlay == 0 {
			fd, err := copyMount(p.Dir.Path, attrOpen)
			if err != nil {
				return nil, err
			}
			if err := sameObject(fd, p.Dir); err != nil {
				return nil, err
			}
			list = append(list, attachment{place.Object{Path: p.Name, Inode: p.Dir.Inode, Dir: true}, fd})
		}
		for _, t := range p.Entries {
			fd, err := copyMount(t.Path, attrShut)
			if err != nil {
				continue // gone meanwhile
			}
			if sameObject(fd, t) != nil {
				unix.Close(fd)
				continue // replaced meanwhile: it is shown later
			}
			list = append(list, attachment{t, fd})
		}
	}
	return list, nil
}

// attachAll mounts the copies in their places, and then the masks of denied paths
// over them, so that the masks always have precedence.
func (v *View) attachAll(copies []attachment) error {
	for _, a := range copies {
		if err := attach(a); err != nil {
			return err
		}
	}
	for _, t := range v.plan.Denied {
		fd, err := v.mask.cover(t)
		if err != nil {
			return err
		}
		if err := attach(attachment{t, fd}); err != nil {
			return err
		}
	}
	return nil
}

// attach consumes a.fd. If the target lies inside a masked directory it does not exist any more, and nothing is
// mounted.
func attach(a attachment) error {
	defer unix.Close(a.fd)
	at, err := place.OpenPath(a.Path)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) {
		return nil // verify looks whether that was for a good reason
	}
	if err != nil {
		return fmt.Errorf("opening %s: %w", a.Path, err)
	}
	defer unix.Close(at)
	if err = moveMount(a.fd, at, a.Path); errors.Is(err, unix.ENOENT) {
		return nil // removed since it was opened: verify looks as well
	}
	return err
}

func moveMount(fd, at int, name string) error {
	err := unix.MoveMount(fd, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	if err != nil {
		return fmt.Errorf("mounting over %s: %w", name, err)
	}
	return nil
}

// copyMount opens a detached copy of the tree at path, mounts below included.
func copyMount(path string, attr uint64) (int, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path,
		unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return -1, fmt.Errorf("copying the mount of %s: %w", path, err)
	}
	err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attr})
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("setting the mount attributes of %s: %w", path, err)
	}
	return fd, nil
}

// sameObject reports an error if fd is not what the host resolved.
func sameObject(fd int, t place.Object) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("%s: %w", t.Path, err)
	}
	if (place.Inode{Dev: st.Dev, Ino: st.Ino}) != t.Inode {
		return fmt.Errorf("%s %w", t.Path, contract.ErrChanged)
	}
	return nil
}

// overmount keeps descriptors of the read-only directories that the writable copies
// will cover, and pins directories there: a directory that is a mount point
// anywhere in the namespace can be neither renamed nor removed (EBUSY), and a
// mount point that no name leads to does not split the writable tree, in which
// files are renamed from directory to directory.
func (v *View) overmount() error {
	for _, w := range v.plan.Writable {
		fd, err := place.OpenPath(w.Path)
		if err != nil {
			return fmt.Errorf("opening %s: %w", w.Path, err)
		}
		v.overmounted[w.Path] = fd
	}
	for _, p := range v.plan.Private {
		fd, err := place.OpenPath(p.Name)
		if err != nil {
			return fmt.Errorf("opening %s: %w", p.Name, err)
		}
		v.hosts[p.Name] = fd
	}
	for _, dir := range v.plan.Pins {
		if err := v.pin(dir); err != nil {
			return err
		}
	}
	return nil
}

// pin makes dir, a directory or a link inside a writable path, a mount point under that path.
func (v *View) pin(dir string) error {
	for root, fd := range v.overmounted {
		if !place.Below(dir, root) {
			continue
		}
		rel, err := filepath.Rel(root, dir)
		if err != nil {
			return err
		}
		at, err := unix.Openat2(fd, rel, &unix.OpenHow{
			Flags:   unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW,
			Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH,
		})
		if err != nil {
			return fmt.Errorf("pinning %s: %w", dir, err)
		}
		defer unix.Close(at)
		tree, err := unix.OpenTree(at, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
		if err != nil {
			return fmt.Errorf("pinning %s: %w", dir, err)
		}
		defer unix.Close(tree)
		if err := moveMount(tree, at, dir); err != nil {
			return err
		}
	}
	return nil
}

// mountProc mounts a /proc that knows the sandbox's processes only. All of it
// is read-only: as root, writing to /proc/sys/kernel/core_pattern or
// sysrq-trigger is a way out, and what a program legitimately writes there
// (uid_map, oom_score_adj) it can do without.
func mountProc(processes int) error {
	fd, err := newFileSystem("proc", nil, attrOpen|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return fmt.Errorf("mounting a new /proc: %w", err)
	}
	defer unix.Close(fd)
	limitProcesses(fd, processes)
	limitWatches(fd)
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: attrShut}); err != nil {
		return fmt.Errorf("making /proc read-only: %w", err)
	}
	return moveMountAt(fd, "/proc")
}

// limitProcesses sets the highest process number in our PID namespace, where it
// is the namespace's own: since Linux 6.14. Before that the same file belongs
// to the whole machine, and must not be touched. It is a limit of convenience;
// that it cannot be set is no reason not to start.
func limitProcesses(proc, processes int) {
	if !kernelAtLeast(6, 14) {
		return
	}
	fd, err := unix.Openat(proc, "sys/kernel/pid_max", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	unix.Write(fd, []byte(strconv.Itoa(processes)))
}

// limitWatches leaves the host half of what its user may watch: commands are that
// user too, and the host has to see denied files appear.
func limitWatches(proc int) {
	for _, name := range []string{"instances", "watches"} {
		from, err := unix.Openat(proc, "sys/fs/inotify/max_user_"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		text := make([]byte, 32)
		n, _ := unix.Read(from, text)
		unix.Close(from)
		most, err := strconv.Atoi(strings.TrimSpace(string(text[:max(n, 0)])))
		if err != nil {
			continue
		}
		to, err := unix.Openat(proc, "sys/user/max_inotify_"+name, unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		unix.Write(to, []byte(strconv.Itoa(most/2)))
		unix.Close(to)
	}
}

// kernelAtLeast reports whether this is Linux major.minor or later.
func kernelAtLeast(major, minor int) bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	var a, b int
	if n, _ := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &a, &b); n != 2 {
		return false
	}
	return a > major || a == major && b >= minor
}

// newFileSystem makes a file system that is mounted nowhere yet.
func newFileSystem(kind string, options map[string]string, attr int) (int, error) {
	fs, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fs)
	for name, value := range options {
		if value == "" {
			err = unix.FsconfigSetFlag(fs, name)
		} else {
			err = unix.FsconfigSetString(fs, name, value)
		}
		if err != nil {
			return -1, fmt.Errorf("%s option %s: %w", kind, name, err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attr)
}

func moveMountAt(fd int, path string) error {
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mounting %s: %w", path, err)
	}
	return nil
}

func createFile(dir int, name string, mode uint32) error {
	fd, err := unix.Openat(dir, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, mode)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}
