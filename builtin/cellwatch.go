package builtin

import (
	"os"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// maxCellWatches is how many directories are watched for one cell: a user has 65,536 inotify watches on a common
// Linux, and other programs of theirs need some. Beyond it, a replaced file is covered before the next command.
const maxCellWatches = 1024

// follow covers a denied file anew when another takes its place, which is how editors save, so that it stays out
// of reach of the commands that run. It returns when the watch of the cell is closed.
func (cs *cells) follow(c *cell) {
	defer close(c.followed)
	for {
		select {
		case event, open := <-c.watch.Events:
			if !open {
				return
			}
			if event.Has(fsnotify.Create) {
				cs.cover(c, event.Name)
			}
		case _, open := <-c.watch.Errors: // a lost event delays to the next command what it would have told
			if !open {
				return
			}
		}
	}
}

// cover covers one path again, if it was covered and another file has taken its place.
func (cs *cells) cover(c *cell, path string) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	old := c.covered[path]
	if old == nil {
		return
	}
	if info, err := os.Lstat(path); err != nil || os.SameFile(old, info) {
		return
	}
	if err := c.box.Deny(path); err != nil {
		c.torn = true
		cs.log.Warn("a denied file was replaced and could not be hidden from the commands that run", "file", path, "error", err)
		return
	}
	c.note([]string{path})
}

// note remembers which files are covered, and watches for others in their place.
func (c *cell) note(paths []string) {
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil {
			continue
		}
		c.covered[path] = info
		if dir := filepath.Dir(path); c.watch != nil && !c.watched[dir] && len(c.watched) < maxCellWatches {
			c.watched[dir] = c.watch.Add(dir) == nil
		}
	}
}
