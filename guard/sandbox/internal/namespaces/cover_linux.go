package namespaces

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/contract"
	"github.com/toolhost/toolhost/guard/sandbox/internal/place"
)

// Change does what a request to Deny, Hold, Show or Refresh asks for.
func (v *View) Change(r contract.Request) error {
	switch r.Kind {
	case contract.Deny:
		return v.over(r.Objects, r.Pins, v.denyOne)
	case contract.Hold:
		return v.over(r.Objects, r.Pins, v.holdOne)
	case contract.Show:
		return v.over(r.Objects, r.Pins, v.showOne)
	}
	return v.refresh()
}

// over mounts over more targets while commands may be running. pins are directories
// above them, and need no pin once they are gone.
func (v *View) over(targets []place.Object, pins []string, mount func(place.Object) error) error {
	errs := []error{v.refresh()}
	for _, dir := range pins {
		if err := v.pin(dir); err != nil && !gone(err) {
			errs = append(errs, err)
		}
	}
	for _, t := range targets {
		if err := mount(t); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// gone reports whether err says that nothing is at a name that was resolved before, so that nothing is to be covered
// or pinned. A directory that has become a link or a file counts as gone too: the target of a link has a name of its
// own, and a file that comes back is reported again.
func gone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

// openTarget opens t, and returns -1 if it is gone already.
func openTarget(t place.Object) (int, error) {
	at, err := place.OpenPath(t.Path)
	switch {
	case gone(err), place.Absent(err):
		return -1, nil
	case err != nil:
		return -1, fmt.Errorf("opening %s: %w", t.Path, err)
	}
	return at, nil
}

// sameObject is [sameObject], except in overlays, where files have other numbers. A file that commands have put there
// instead is their own.
func (v *View) sameObject(fd int, t place.Object) error {
	if v.plan.Overlay > 0 || place.WithinAny(t.Path, v.plan.Cached()) {
		return nil
	}
	return sameObject(fd, t)
}

// denyOne covers t, unless it is covered or gone already.
func (v *View) denyOne(t place.Object) error {
	at, err := openTarget(t)
	if at < 0 {
		return err
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return fmt.Errorf("%s: %w", t.Path, err)
	}
	if v.mask.is(st.Dev) {
		return nil
	}
	if err := v.sameObject(at, t); err != nil {
		return err
	}
	fd, err := v.mask.cover(t)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := moveMount(fd, at, t.Path); err != nil {
		return err
	}
	return v.verifyHidden(t)
}

// holdOne makes t read-only, unless it is so or gone already.
func (v *View) holdOne(t place.Object) error {
	at, err := openTarget(t)
	if at < 0 {
		return err
	}
	defer unix.Close(at)
	var st unix.Statfs_t
	if err := unix.Fstatfs(at, &st); err != nil {
		return fmt.Errorf("%s: %w", t.Path, err)
	}
	if st.Flags&unix.ST_RDONLY != 0 {
		return nil
	}
	fd, err := copyMount(t.Path, attrShut)
	if err != nil {
		return err
	}
	if err := v.sameObject(fd, t); err != nil {
		unix.Close(fd)
		return err
	}
	if err := attach(attachment{t, fd}); err != nil {
		return err
	}
	return verifyReadOnly(t.Path)
}

// showOne mounts an entry of the host in a private directory, over its mount point.
func (v *View) showOne(t place.Object) error {
	host, ok := v.hosts[filepath.Dir(t.Path)]
	if !ok {
		return nil // the directory is hidden
	}
	at, err := openTarget(t)
	if at < 0 {
		return err
	}
	defer unix.Close(at)
	if sameObject(at, t) == nil {
		return nil // it is there already
	}
	tree, err := unix.OpenTree(host, filepath.Base(t.Path),
		unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		if place.Absent(err) {
			return nil
		}
		return fmt.Errorf("showing %s: %w", t.Path, err)
	}
	defer unix.Close(tree)
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE,
		&unix.MountAttr{Attr_set: attrShut}); err != nil {
		return fmt.Errorf("showing %s: %w", t.Path, err)
	}
	if sameObject(tree, t) != nil {
		return nil // replaced again
	}
	return moveMount(tree, at, t.Path)
}
