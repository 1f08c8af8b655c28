package namespaces

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/contract"
	"github.com/toolhost/toolhost/guard/sandbox/internal/place"
)

const (
	// overlayPlace is where the file system of the changes is attached while overlays are made of it: the kernel takes
	// no upper directory that is not attached. A new /dev is mounted there afterwards.
	overlayPlace = "/dev"
	// overlayFiles is how many files and directories the changes of one sandbox may have: each takes about a kilobyte
	// of memory.
	overlayFiles = 1 << 18
)

// An overlaid directory shows lower at path, and commands change a copy.
type overlaid struct {
	place.Object        // what commands find at its path
	lower        string // the path of what they find
	entries      []place.Object
}

// overlaidOf lists the directories that commands write.
func overlaidOf(pl *contract.Plan) (list []overlaid) {
	for _, t := range pl.Writable {
		if t.Dir {
			list = append(list, overlaid{Object: t, lower: t.Path})
		}
	}
	for _, p := range pl.Private {
		list = append(list, overlaid{place.Object{Path: p.Name, Inode: p.Dir.Inode, Dir: true}, p.Dir.Path, p.Entries})
	}
	return list
}

// overlays makes the overlays of a plan. Where the system has none, temporary directories are empty ones, and the
// others stay read-only, for the reason in v.noOverlay. The file system of the changes ends with the last of them: it
// is attached nowhere.
func (v *View) overlays() (list []attachment, err error) {
	changes, err := newFileSystem("tmpfs", map[string]string{
		"mode": "0700", "size": strconv.FormatInt(v.plan.Overlay, 10), "nr_inodes": strconv.Itoa(overlayFiles),
	}, attrOpen)
	if err != nil {
		return nil, fmt.Errorf("making room for changes: %w", err)
	}
	defer unix.Close(changes)
	if err := moveMountAt(changes, overlayPlace); err != nil {
		return nil, err
	}
	for i, o := range overlaidOf(v.plan) {
		at := overlayPlace + "/" + strconv.Itoa(i)
		if err = unix.Mkdir(at, 0o700); err != nil {
			break
		}
		fd, failed := o.open(at)
		if failed != nil {
			if errors.Is(failed, contract.ErrChanged) {
				err = failed
				break
			}
			v.NoOverlay = failed
			if !slices.Contains(v.plan.Temporary, o.Path) {
				continue
			}
			if fd, err = o.openEmpty(at); err != nil {
				break
			}
		} else if v.refreshed, err = keep(v.refreshed, fd); err != nil {
			break
		}
		list = append(list, attachment{o.Object, fd})
	}
	return list, errors.Join(err, unix.Unmount(overlayPlace, unix.MNT_DETACH))
}

// keep appends a copy of a descriptor.
func keep(list []int, fd int) ([]int, error) {
	fd, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	return append(list, fd), err
}

// open opens an overlay whose changes go below at. Without attributes of files the kernel could not record that a
// directory replaces another one: it would fail to make it.
func (o overlaid) open(at string) (int, error) {
	lower, err := place.OpenPath(o.lower)
	if err != nil {
		return -1, fmt.Errorf("opening %s: %w", o.lower, err)
	}
	defer unix.Close(lower)
	if err := sameObject(lower, place.Object{Path: o.lower, Inode: o.Inode}); err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(lower, &st); err != nil {
		return -1, err
	}
	upper, work := at+"/upper", at+"/work"
	err = errors.Join(unix.Mkdir(upper, 0o700), unix.Chmod(upper, st.Mode&0o7777), unix.Mkdir(work, 0o700))
	if err == nil {
		err = unix.Setxattr(work, "user.overlay", nil, 0)
	}
	if err == nil {
		err = unix.Fchdir(lower) // its path may be longer than an option
	}
	if err != nil {
		return -1, fmt.Errorf("preparing an overlay of %s: %w", o.lower, err)
	}
	fd, err := newFileSystem("overlay", map[string]string{"lowerdir": ".", "upperdir": upper, "workdir": work,
		"userxattr": "", "index": "off"}, attrOpen)
	if err != nil {
		return -1, fmt.Errorf("making an overlay of %s: %w", o.lower, err)
	}
	return fd, nil
}

// openEmpty opens a new directory below at, with mount points for the entries of the host.
func (o overlaid) openEmpty(at string) (int, error) {
	dir := at + "/empty"
	if err := unix.Mkdir(dir, 0o700); err != nil {
		return -1, err
	}
	for _, t := range o.entries {
		name := dir + t.Path[len(o.Path):]
		err := error(nil)
		if t.Dir {
			err = unix.Mkdir(name, 0o700)
		} else {
			err = createFile(unix.AT_FDCWD, name, 0o600)
		}
		if err != nil {
			return -1, err
		}
	}
	return copyMount(dir, attrOpen)
}

// refresh makes the kernel forget what overlays have shown, so that commands see what other programs have changed
// since.
func (v *View) refresh() error {
	for _, fd := range v.refreshed {
		fs, err := unix.Fspick(fd, "", unix.FSPICK_CLOEXEC|unix.FSPICK_EMPTY_PATH)
		if err == nil {
			err = unix.FsconfigReconfigure(fs)
			unix.Close(fs)
		}
		if err != nil {
			return fmt.Errorf("refreshing what commands see: %w", err)
		}
	}
	return nil
}
