package sandboxpool

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// pin remembers the protected and the masked files as they are before mounts are put on them. A mount is on a file,
// not on a name: what takes the place of that file, as when an editor saves or git checks out, is open to commands
// until it is mounted over in turn.
func (c *Sandbox) pin() {
	c.fixed = map[string]*coveredFile{}
	for _, path := range slices.Concat(c.paths.ReadOnly, c.held) {
		if file, err := lookAt(path); err == nil {
			c.fixed[path] = file
		} else {
			c.absent = append(c.absent, path)
		}
	}
	for _, path := range c.paths.Masked {
		if file, err := lookAt(path); err == nil {
			c.fixed[path] = file
		}
	}
	c.mounted = map[string]*coveredFile{}
	for _, path := range c.paths.Writable {
		if file, err := lookAt(path); err == nil {
			c.mounted[path] = file
		}
	}
}

// coveredFiles are files as they were when something was mounted on them.
type coveredFiles map[string]*coveredFile

// replaced reports whether another file has taken the place of one.
func (files coveredFiles) replaced() bool {
	for path, old := range files {
		if file, err := lookAt(path); err == nil && !old.same(file) {
			return true
		}
	}
	return false
}

// pinsIntact makes sure that what is protected or masked still is, where another file has its name by now. It is
// false when that takes a new sandbox.
func (c *Sandbox) pinsIntact() bool {
	for path := range c.fixed {
		if !c.repin(path) {
			return false
		}
	}
	return true
}

// repin pins a protected or masked file again if another file has taken its name. It returns false if that takes a
// new sandbox: a name without a file must be watched from now on.
func (c *Sandbox) repin(path string) bool {
	file, err := lookAt(path)
	switch old := c.fixed[path]; {
	case err != nil:
		return false
	case old.same(file):
		return true
	case file.info.Mode()&os.ModeSymlink != 0 || old.info.IsDir() != file.info.IsDir():
		return false
	}
	if slices.Contains(c.paths.Masked, path) {
		if file.info.IsDir() || c.deny(path) != nil { // ways may lead through a directory
			return false
		}
	} else if c.hold(path) != nil {
		return false
	}
	c.fixed[path] = file
	c.watch.addAbove(path, c.paths.Writable)
	return true
}

// replaced has what is protected or masked held again at a path, or below it, where something else has appeared.
func (f follower) replaced(path string) {
	f.box.mu.Lock()
	defer f.box.mu.Unlock()
	for fixed := range f.box.fixed {
		if fixed != path && !strings.HasPrefix(fixed, path+string(filepath.Separator)) || f.box.life.Err() != nil {
			continue
		}
		if !f.box.repin(fixed) {
			f.box.failed = true
		}
		f.box.watch.addAbove(fixed, f.box.paths.Writable) // also if the same one was moved away and back
	}
}

// sameControl reports whether the names of control files lead where they led when the sandbox started. If not, it
// takes a new one; what they lead to now is held in this one too as far as it exists.
func (c *Sandbox) sameControl() bool {
	now, was := c.policy.Commands().ControlPaths(), c.paths.Control
	if now.Equal(was) {
		return true
	}
	for _, end := range now.Ends {
		if _, held := slices.BinarySearch(was.Ends, end); !held && !slices.Contains(c.paths.Masked, end) {
			_ = c.hold(end) // the new sandbox does not start without
		}
	}
	return false
}

// rerouted has control files held when a link or directory on the way to one has appeared or changed.
func (f follower) rerouted() {
	f.box.mu.Lock()
	defer f.box.mu.Unlock()
	if f.box.life.Err() == nil && !f.box.failed && !f.box.sameControl() {
		f.box.failed = true
	}
}

// addFixed watches for files that take the place of protected or masked ones, or of the way to control files.
func (w *watches) addFixed(c *Sandbox) {
	for path := range c.fixed {
		w.addAbove(path, c.paths.Writable)
	}
	for _, path := range c.paths.Control.Ends {
		w.add(filepath.Dir(path))
	}
	for _, path := range c.paths.Control.Steps {
		if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink != 0 {
			w.add(filepath.Dir(path))
		}
	}
}

// addAbove watches the directory of a path and, in what is writable, those above it.
func (w *watches) addAbove(path string, writable []string) {
	dir := filepath.Dir(path)
	for w.add(dir) && slices.ContainsFunc(writable,
		func(root string) bool { return strings.HasPrefix(dir, root+string(filepath.Separator)) }) {
		dir = filepath.Dir(dir)
	}
}
