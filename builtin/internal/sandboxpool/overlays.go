package sandboxpool

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolhost/toolhost/guard/privatefile"
	"github.com/toolhost/toolhost/guard/sandbox"
	"github.com/toolhost/toolhost/guard/statedir"
)

// Limits of what commands write in caches of the host.
const (
	// overlayAge is how long the layer of a workspace is kept after its last use.
	overlayAge = 30 * 24 * time.Hour
	// overlayBytes limits all of them together. Above it, those that were not used for longest are removed.
	overlayBytes = 20 << 30
	// overlaysAtOnce is how many sandboxes of one caller in one workspace have a layer of their own at the same time.
	overlaysAtOnce = 8
	// tidyEvery is how often those limits are applied.
	tidyEvery = 24 * time.Hour
)

// overlays returns the overlays of the caches that exist, but for those in which commands reach sockets of the host.
// The layer belongs to the caller and the workspace. It is locked until the sandbox is closed.
func (cs *Pool) overlays(c *Sandbox, tools toolCaches, sockets []string) []sandbox.Cache {
	scratch := c.policy.Commands().Scratch()
	if cs.overlayDir == "" {
		return nil
	}
	if err := cmp.Or(os.MkdirAll(cs.overlayDir, 0o700), statedir.Check(cs.overlayDir)); err != nil {
		cs.log.Warn("commands cannot write in the caches of programs", "error", err)
		return nil
	}
	cs.tidying.Do(func() {
		if statedir.TidyDue(cs.overlayDir, tidyEvery) {
			cs.unwatched.Go(func() { cs.tidyOverlays(time.Now(), overlayBytes) })
		}
	})
	// The layer of a sandbox that has ended is free once its end is over.
	cs.closeRetired(func(c *Sandbox) bool { return c.users == 0 && c.policy.Commands().Scratch() == scratch })
	key := filepath.Base(filepath.Dir(scratch)) + "-" + filepath.Base(scratch)
	var dir string
	for i := 0; i < overlaysAtOnce && c.overlay == nil; i++ {
		dir = filepath.Join(cs.overlayDir, key+"-"+strconv.Itoa(i))
		c.overlay, _ = statedir.TryOwn(dir + lockSuffix) // an error: another sandbox has it
	}
	if c.overlay == nil {
		return nil
	}
	var list []sandbox.Cache
	var places []string
	for _, t := range tools {
		for _, place := range t.places {
			info, err := os.Lstat(place)
			reached := slices.ContainsFunc(sockets, func(path string) bool { return within(path, []string{place}) })
			if err != nil || !info.IsDir() || reached || within(place, places) {
				continue
			}
			o, err := newOverlay(place, filepath.Join(dir, overlayName(place)))
			if err != nil {
				cs.log.Warn("commands cannot write in a cache", "directory", place, "error", err)
				continue
			}
			list, places = append(list, o), append(places, place)
		}
	}
	now := time.Now()
	_ = os.Chtimes(dir, now, now) // else it is removed too early
	return list
}

// lockSuffix is that of the lock of a layer.
const lockSuffix = ".lock"

// overlayName names the part of a layer that belongs to a directory.
func overlayName(place string) string {
	return strings.ReplaceAll(strings.ReplaceAll(strings.TrimPrefix(place, "/"), "%", "%25"), "/", "%2F")
}

// newOverlay creates the directories of an overlay, the work directory anew: in the old one the last overlay has left a
// mark that it was not synchronized, and the kernel refuses to mount such an overlay.
func newOverlay(place, dir string) (sandbox.Cache, error) {
	o := sandbox.Cache{Name: place, Upper: filepath.Join(dir, "upper"), Work: filepath.Join(dir, "work")}
	err := statedir.RemoveTree(o.Work)
	if err == nil {
		err = os.MkdirAll(o.Work, 0o700)
	}
	if err != nil {
		return o, err
	}
	info, err := os.Stat(place)
	if err != nil {
		return o, err
	}
	if err = os.Mkdir(o.Upper, info.Mode().Perm()|0o700); errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return o, err
}

// scratches returns the directory with the scratch directories of all workspaces, if it lies in an overlay: those
// that are created while the sandbox runs would be seen in it.
func scratches(overlays []sandbox.Cache, scratch string) []string {
	for _, o := range overlays {
		if within(scratch, []string{o.Name}) {
			return []string{filepath.Dir(filepath.Dir(scratch))}
		}
	}
	return nil
}

// tidyOverlays removes layers that are too old, and the oldest of those that have more bytes together. Those in use
// stay.
func (cs *Pool) tidyOverlays(now time.Time, most int64) {
	type entry struct {
		name string
		used time.Time
		size int64
	}
	var all []entry
	entries, err := os.ReadDir(cs.overlayDir)
	for _, e := range entries {
		info, infoErr := e.Info()
		if infoErr == nil && e.IsDir() {
			all = append(all, entry{e.Name(), info.ModTime(), privatefile.Size(filepath.Join(cs.overlayDir, e.Name()))})
		}
	}
	slices.SortFunc(all, func(a, b entry) int { return b.used.Compare(a.used) })
	total := int64(0)
	for _, l := range all {
		if total += l.size; total <= most && now.Sub(l.used) <= overlayAge {
			continue
		}
		_, removeErr := statedir.Running(filepath.Join(cs.overlayDir, l.name+lockSuffix), func() error {
			return statedir.RemoveTree(filepath.Join(cs.overlayDir, l.name))
		})
		err = cmp.Or(err, removeErr)
	}
	if err = cmp.Or(err, statedir.NoteTidied(cs.overlayDir)); err != nil {
		cs.log.Warn("cannot remove old caches of commands", "error", err)
	}
}
