package sandboxpool

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/toolhost/toolhost/guard/changes"
	"github.com/toolhost/toolhost/guard/sandbox"
)

// maxWatches limits the watched directories of one sandbox, those nearest to the roots: a user usually has 65,536
// inotify watches for all programs. Elsewhere, a denied file that appears or is replaced is covered before the next
// command.
const maxWatches = 1024

// A follower covers denied files that appear or change while commands run.
type follower struct {
	pool *Pool
	box  *Sandbox
}

// follow covers a denied file for the running commands when it appears or is replaced, as editors do when they save.
// It returns when the sandbox ends.
func (f follower) follow() {
	defer close(f.box.followed)
	// The other kinds of sandboxes hide nothing from what runs.
	deep := f.box.policy.Commands().DeniesFiles() && f.box.box.Report().Backend == sandbox.Namespaces
	if deep {
		for _, root := range slices.Concat(f.box.paths.Writable, f.box.paths.Originals) {
			if root != f.box.policy.Commands().Scratch() { // which contains only files of the caller
				f.watchTree(root, false)
			}
		}
	}
	feed := f.box.watch.feed
	for {
		select {
		case <-f.box.life.Done():
			return
		case <-feed.Changed():
			if lost := feed.Read(func(owner any, e changes.Event) { f.take(owner.(*watched), e, deep) }); lost {
				f.lookAll()
			}
		}
	}
}

// take examines a change of what is watched.
func (f follower) take(w *watched, e changes.Event, deep bool) {
	path := filepath.Join(w.path, e.Entry)
	switch e.Kind {
	case changes.Self:
		f.ended(w, deep)
	case changes.Name:
		f.gone(path)
		f.appeared(path, deep)
	default:
		if w.file || f.covers(path) {
			f.linkedAnew(path)
		}
	}
}

// watchTree watches a directory and those below it, and covers denied files that have appeared there before the
// watch. In a new directory it also looks for hard links to denied files.
func (f follower) watchTree(dir string, fresh bool) {
	for dirs := []string{dir}; len(dirs) > 0 && f.box.life.Err() == nil; dirs = dirs[1:] {
		if !f.watch(dirs[0]) {
			return
		}
		entries, _ := os.ReadDir(dirs[0]) // a directory that was removed has no entries
		for _, e := range entries {
			path := filepath.Join(dirs[0], e.Name())
			switch {
			case f.box.policy.Commands().Hidden(path, e.IsDir()):
				f.cover(path, false)
			case fresh && e.Type().IsRegular():
				if file, err := lookAt(path); err == nil && f.knows(path, file) {
					f.cover(path, true)
				}
			case e.IsDir() && e.Name() != ".git": // git chooses the names in it
				dirs = append(dirs, path)
			}
		}
	}
}

// watch watches one directory, and reports whether there is room for more.
func (f follower) watch(dir string) bool {
	f.box.mu.Lock()
	defer f.box.mu.Unlock()
	return f.box.watch.add(dir)
}

// appeared covers a path if it is denied. If deep is set it searches a directory that is not denied for denied files.
func (f follower) appeared(path string, deep bool) {
	file, err := lookAt(path)
	if err != nil {
		return
	}
	f.replaced(path)
	_, end := slices.BinarySearch(f.box.paths.Control.Ends, path)
	if _, step := slices.BinarySearch(f.box.paths.Control.Steps, path); step || end {
		f.rerouted()
	}
	if dir := file.info.IsDir(); f.knows(path, file) || f.box.policy.Commands().Hidden(path, dir) {
		f.cover(path, true)
	} else if deep && dir && filepath.Base(path) != ".git" {
		f.watchTree(path, true)
	}
}

// knows reports whether a path was covered before, or is a new name of a file that is.
func (f follower) knows(path string, file *coveredFile) bool {
	f.box.mu.Lock()
	defer f.box.mu.Unlock()
	if f.box.deniedAtMount[path] != nil {
		return true
	}
	for _, known := range f.box.deniedAtMount {
		if known.same(file) {
			return true
		}
	}
	return f.box.denied.isLinked(file)
}

// covers reports whether a path is a denied one that was covered.
func (f follower) covers(path string) bool {
	f.box.mu.Lock()
	defer f.box.mu.Unlock()
	return f.box.deniedAtMount[path] != nil
}

// ended ends a watch whose file or directory is gone, unless a newer watch has its path. It examines the directory that
// has this path now. It examines no file: the watch of its directory reports a new one, and masked directories have no
// watch because the host moves files out of them that are not denied any more.
func (f follower) ended(w *watched, deep bool) {
	f.box.mu.Lock()
	newer := f.box.watch.byPath[w.path] != w
	f.box.mu.Unlock()
	if !newer {
		f.gone(w.path)
		if !w.file {
			f.appeared(w.path, deep)
		}
	}
}

// gone ends the watch of a path: another file or directory may have replaced what was watched.
func (f follower) gone(path string) {
	f.box.mu.Lock()
	defer f.box.mu.Unlock()
	f.box.watch.drop(path)
	if f.box.denied.has(path) {
		f.box.watch.addFile(path)
	}
}

// cover covers one denied path. Unless it has just appeared, a path that is covered already is not covered again: if
// the file system has no birth times, a new file with the inode number of the one it replaced cannot be distinguished
// from it.
func (f follower) cover(path string, appeared bool) {
	f.box.mu.Lock()
	defer f.box.mu.Unlock()
	file, err := lookAt(path)
	if err != nil || f.box.life.Err() != nil || f.box.paths.Harmless(path) {
		return
	}
	if old := f.box.deniedAtMount[path]; !appeared && old != nil && old.same(file) {
		return
	}
	if err := f.box.deny(path); err != nil {
		f.box.failed = true
		// The log does not name the file: what a host logs reaches its client.
		f.pool.log.Warn("a denied file has appeared and could not be hidden from the commands that run; their sandbox is " +
			"not used again")
		f.pool.log.Debug("a denied file could not be hidden", "file", path, "error", err)
		return
	}
	// Record the file as it was before it was hidden. If it was replaced since then, the new file is not covered yet,
	// and its event follows.
	f.box.deniedAtMount[path] = file
	f.box.watch.add(filepath.Dir(path))
	f.box.denied.count([]string{path})
	if f.box.denied.has(path) {
		f.box.watch.addFile(path)
	}
}

// lookAll covers all denied files after events were lost.
func (f follower) lookAll() {
	f.box.mu.Lock()
	defer f.box.mu.Unlock()
	if !f.box.upToDate(f.box.policy) {
		f.box.failed = true
	}
}

// note records which files are covered, and watches for files that replace them.
func (c *Sandbox) note(paths []string) {
	for _, path := range paths {
		file, err := lookAt(path)
		if err != nil {
			continue
		}
		c.deniedAtMount[path] = file
		c.watch.add(filepath.Dir(path))
	}
}

// watches are the watched directories and files of one sandbox. The lock of the sandbox guards them.
type watches struct {
	feed   *changes.Feed // nil if the system has none left, or does not report changes exactly
	byPath map[string]*watched
}

// A watched is a directory, or a denied file, that is watched.
type watched struct {
	watch changes.Dir
	path  string
	file  bool
}

// add watches a directory, and reports whether there is room for more.
func (w *watches) add(dir string) bool { return w.addPath(dir, false) }

// addFile watches a denied file, and reports whether there is room for more.
func (w *watches) addFile(path string) bool { return w.addPath(path, true) }

func (w *watches) addPath(path string, file bool) bool {
	if w.feed == nil {
		return false
	}
	at := w.byPath[path]
	if at == nil {
		if len(w.byPath) >= maxWatches {
			return false
		}
		at = &watched{path: path, file: file}
		w.byPath[path] = at
	}
	if file { // also if it has a watch, which may be that of another file with this path
		w.feed.WatchFile(&at.watch, at, path)
	} else {
		w.feed.WatchPath(&at.watch, at, path)
	}
	return true
}

// drop ends the watch of a path, if it has one.
func (w *watches) drop(path string) {
	if at := w.byPath[path]; at != nil {
		w.feed.Unwatch(&at.watch)
		delete(w.byPath, path)
	}
}
