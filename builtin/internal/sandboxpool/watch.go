package sandboxpool

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/fsnotify/fsnotify"

	"github.com/toolhost/toolhost/guard/sandbox"
)

// maxCellWatches is how many directories are watched for one sandbox, those nearest to the roots: a user has 65,536 inotify
// watches on a common Linux, and other programs of theirs need some. Beyond it, a denied file that appears or is replaced
// is covered before the next command.
const maxCellWatches = 1024

// follow covers a denied file when it appears, or when another takes its place, which is how editors save, so that it is
// out of reach of the commands that run. It returns when the watch of the sandbox is closed.
func (cs *Pool) follow(c *Sandbox) {
	defer close(c.followed)
	// The watcher tells of an error while it holds a lock that every Add takes, also those of who holds the lock of the
	// sandboxes. So errors have to be taken whatever the sandboxes do.
	lost := make(chan struct{}, 1)
	var errs sync.WaitGroup
	defer errs.Wait()
	errs.Go(func() {
		for err := range c.watch.Errors {
			if errors.Is(err, fsnotify.ErrEventOverflow) {
				select {
				case lost <- struct{}{}:
				default:
				}
			}
		}
	})
	deep := c.policy.Commands().DeniesFiles() && c.box.Report().Backend == sandbox.Namespaces // the others hide nothing from what runs
	if deep {
		for _, root := range c.paths.Writable {
			if root != c.policy.Commands().Scratch() { // all of it is the caller's own
				cs.survey(c, root, false)
			}
		}
	}
	for _, dir := range c.outside {
		cs.watch(c, dir)
	}
	for {
		select {
		case event, open := <-c.watch.Events:
			if !open {
				return
			}
			if event.Has(fsnotify.Create) {
				cs.appeared(c, event.Name, deep)
			} else if event.Has(fsnotify.Chmod) {
				cs.linkedAnew(c, event.Name)
			} else if event.Has(fsnotify.Remove) || event.Has(fsnotify.Rename) {
				cs.gone(c, event.Name)
			}
		case <-lost:
			cs.lookAll(c)
		}
	}
}

// survey watches a directory and those below it, and covers what is denied among the files that have appeared there
// before the watch. In a directory that is new it also looks for other names of what is denied.
func (cs *Pool) survey(c *Sandbox, dir string, fresh bool) {
	for dirs := []string{dir}; len(dirs) > 0 && c.life.Err() == nil; dirs = dirs[1:] {
		if !cs.watch(c, dirs[0]) {
			return
		}
		entries, _ := os.ReadDir(dirs[0]) // what is gone again has nothing in it
		for _, e := range entries {
			path := filepath.Join(dirs[0], e.Name())
			switch {
			case c.policy.Commands().Denied(path, e.IsDir()):
				cs.cover(c, path, false)
			case fresh && e.Type().IsRegular():
				if file, err := lookAt(path); err == nil && cs.knows(c, path, file) {
					cs.cover(c, path, true)
				}
			case e.IsDir() && e.Name() != ".git": // what git keeps is called as git wants
				dirs = append(dirs, path)
			}
		}
	}
}

// watch watches one directory, and reports whether there is room for more.
func (cs *Pool) watch(c *Sandbox, dir string) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return c.watchFor(dir)
}

// appeared covers a path if it is denied; in a directory that is not, it looks for what is if it is to look deep.
func (cs *Pool) appeared(c *Sandbox, path string, deep bool) {
	file, err := lookAt(path)
	if err != nil {
		return
	}
	cs.replaced(c, path)
	_, end := slices.BinarySearch(c.paths.Control.Ends, path)
	if _, step := slices.BinarySearch(c.paths.Control.Steps, path); step || end {
		cs.rerouted(c)
	}
	if dir := file.info.IsDir(); cs.knows(c, path, file) || c.policy.Commands().Denied(path, dir) {
		cs.cover(c, path, true)
	} else if !within(path, c.paths.Writable) {
		cs.appearedOutside(c, path, file)
	} else if deep && dir && filepath.Base(path) != ".git" {
		cs.survey(c, path, true)
	}
}

// knows reports whether a path was covered before, or is a new name of a file that is.
func (cs *Pool) knows(c *Sandbox, path string, file *coveredFile) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c.deniedAtMount[path] != nil {
		return true
	}
	for _, known := range c.deniedAtMount {
		if known.same(file) {
			return true
		}
	}
	return c.isLinked(file)
}

// gone notes that a directory, if it was one, is no longer watched: another may take its place.
func (cs *Pool) gone(c *Sandbox, path string) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	delete(c.watched, path)
	if c.isDenied(path) { // another file has taken its place
		c.watchFor(path)
	}
}

// cover covers one denied path. Unless it has just appeared, what is covered already is left as it is: where the file
// system tells no time of birth, a new file with the number of the one whose place it took is not told from it.
func (cs *Pool) cover(c *Sandbox, path string, appeared bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	file, err := lookAt(path)
	if err != nil || c.life.Err() != nil || c.paths.Harmless(path) {
		return
	}
	if old := c.deniedAtMount[path]; !appeared && old != nil && old.same(file) {
		return
	}
	if err := c.deny(path); err != nil {
		c.failed = true
		// Which one is for who asks for it: what a host logs reaches its client.
		cs.log.Warn("a denied file has appeared and could not be hidden from the commands that run; their sandbox is not used again")
		cs.log.Debug("a denied file could not be hidden", "file", path, "error", err)
		return
	}
	// What was there before: if another has taken its place meanwhile, that is not covered, and its event is still to come.
	c.deniedAtMount[path] = file
	c.watchFor(filepath.Dir(path))
	c.count([]string{path})
	if c.isDenied(path) {
		c.watchFor(path)
	}
}

// lookAll covers what is denied among all files, after events were lost.
func (cs *Pool) lookAll(c *Sandbox) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if !c.upToDate(c.policy) {
		c.failed = true
	}
}

// note remembers which files are covered, and watches for others in their place.
func (c *Sandbox) note(paths []string) {
	for _, path := range paths {
		file, err := lookAt(path)
		if err != nil {
			continue
		}
		c.deniedAtMount[path] = file
		c.watchFor(filepath.Dir(path))
	}
}

// watchFor watches a directory, and reports whether there is room for more. The caller holds the lock of the sandboxes.
func (c *Sandbox) watchFor(dir string) bool {
	if c.watch == nil || c.watched[dir] {
		return c.watch != nil
	}
	if len(c.watched) >= maxCellWatches {
		return false
	}
	c.watched[dir] = c.watch.Add(dir) == nil
	return true
}
