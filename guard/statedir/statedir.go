// Package statedir contains the code that the stores of the state directory share. They limit their directories by
// age, number and size, at intervals, and the first of several hosts does so for all.
//
// Its Go API is not stable.
package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/guard/privatefile"
)

// ErrUnsafe reports a path that is not a directory of the user alone.
var ErrUnsafe = errors.New("the directory is not its owner's alone")

// Check returns an error if a path is not a directory, or another user can list or write it. On Windows the access
// list of the profile holds.
func Check(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%w: %s is not a directory: remove it", ErrUnsafe, dir)
	case !privatefile.Ours(info):
		return fmt.Errorf("%w: %s belongs to another user", ErrUnsafe, dir)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%w: %s is open to other users: chmod 700 it", ErrUnsafe, dir)
	}
	return nil
}

// Limits are the limits of [Sweep]. A zero field is no limit.
type Limits struct {
	Age   time.Duration // since an entry was last changed
	Files int
	Bytes int64
}

// A Kind is the class of an entry of a directory.
type Kind int

// The kinds of entries.
const (
	Foreign    Kind = iota // not of the store: it stays, and does not count
	Kept                   // it is removed if it is too old, or exceeds the limits after the newer ones
	Latest                 // it stays, and counts as the newest
	Unfinished             // its writer was killed: it is removed
)

// Sweep removes entries of a directory. The caller holds the lock under which entries are written.
func Sweep(root *os.Root, keep Limits, kind func(fs.DirEntry) Kind) error {
	type kept struct {
		fs.FileInfo
		kind Kind
	}
	entries, err := fs.ReadDir(root.FS(), ".")
	errs, list := []error{err}, []kept(nil)
	for _, e := range entries {
		info, err := e.Info()
		switch k := kind(e); {
		case strings.HasPrefix(e.Name(), doomed): // a sweep was killed
			errs = append(errs, root.RemoveAll(e.Name()))
		case k == Foreign || err != nil: // an error: it was removed meanwhile
		case k == Unfinished || k == Kept && keep.Age > 0 && time.Since(info.ModTime()) > keep.Age:
			errs = append(errs, remove(root, e))
		default:
			list = append(list, kept{info, k})
		}
	}
	slices.SortFunc(list, func(a, b kept) int {
		if a.kind != b.kind {
			return int(b.kind - a.kind) // Latest first
		}
		return b.ModTime().Compare(a.ModTime())
	})
	files, size := 0, int64(0)
	for _, e := range list {
		over := keep.Files > 0 && files >= keep.Files || keep.Bytes > 0 && size+e.Size() > keep.Bytes
		if over && e.kind != Latest {
			errs = append(errs, remove(root, fs.FileInfoToDirEntry(e)))
			continue
		}
		files, size = files+1, size+e.Size()
	}
	return errors.Join(errs...)
}

// doomed begins the name of a directory that is being removed.
const doomed = ".removed-"

// remove removes an entry. It renames a directory first, so that no store takes one without a part of its content for
// whole if the sweep is killed.
func remove(root *os.Root, e fs.DirEntry) error {
	name := e.Name()
	if e.IsDir() && root.Rename(name, doomed+name) == nil {
		name = doomed + name
	}
	return root.RemoveAll(name)
}

// SweepDir is [Sweep] for the path of a directory, which need not exist.
func SweepDir(dir string, keep Limits, kind func(fs.DirEntry) Kind) error {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(Sweep(root, keep, kind), root.Close())
}

// RemoveTree removes a directory, including subdirectories that a command has made inaccessible.
func RemoveTree(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700) // before it is read: WalkDir tells of a directory first
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// All classes every entry of a directory as Kept.
func All(fs.DirEntry) Kind { return Kept }

// tidiedName is the file with the time of the last [NoteTidied].
const tidiedName = "tidied"

// maxTidied bounds what is read of the file tidiedName, in bytes.
const maxTidied = 64

// TidiedAt returns when a directory was last tidied; the zero time if that is unknown.
func TidiedAt(dir string) time.Time {
	raw, err := privatefile.Read(filepath.Join(dir, tidiedName), maxTidied)
	if err != nil {
		return time.Time{}
	}
	at, _ := time.Parse(time.RFC3339Nano, string(raw)) // zero after an error
	return at
}

// TidyDue reports whether a directory was not tidied within the last interval, or at a time to come.
func TidyDue(dir string, every time.Duration) bool {
	age := time.Since(TidiedAt(dir))
	return age < 0 || age >= every
}

// NoteTidied records that a directory was tidied now.
func NoteTidied(dir string) error {
	return privatefile.ReplaceQuickly(filepath.Join(dir, tidiedName), []byte(time.Now().UTC().Format(time.RFC3339Nano)))
}
