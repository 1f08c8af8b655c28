package sandboxpool

import (
	"io/fs"
	"os"
	"path/filepath"
)

// maxDeniedFiles bounds how many denied files are looked at for new names before each command, those in denied directories
// included. Each takes about a microsecond.
const maxDeniedFiles = 4096

// maxMaskedFiles bounds it for each of the home directory's secrets: keys are few.
const maxMaskedFiles = 64

// A fileID tells one file from another, whatever its names are. It is zero where the system does not tell.
type fileID struct{ device, inode uint64 }

// A deniedFile is a file that rules deny, by one of its denied names.
type deniedFile struct {
	path  string
	names uint64 // how many it had when all of them were covered
}

// count notes the denied files at or below paths, and how many names they have. A file that is noted already keeps its count:
// a name that it got since is still to be covered.
func (c *Sandbox) count(paths []string) {
	for _, path := range paths {
		c.countIn(path, maxDeniedFiles-len(c.denied), func(names uint64) uint64 { return names })
	}
}

// countMasked notes files in what is masked, such as keys. The sandbox has not looked for other names of theirs yet.
func (c *Sandbox) countMasked() {
	for _, path := range c.paths.Masked {
		c.countIn(path, min(maxMaskedFiles, maxDeniedFiles-len(c.denied)), func(uint64) uint64 { return 1 })
	}
}

// countIn notes at most so many files at or below a path.
func (c *Sandbox) countIn(path string, most int, covered func(names uint64) uint64) {
	if c.denied == nil {
		c.denied = map[fileID]*deniedFile{}
	}
	_ = filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // what cannot be listed has no names that could be linked
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() {
			return nil
		}
		id, names := identify(info)
		if id == (fileID{}) {
			return nil
		}
		if known := c.denied[id]; known != nil {
			if _, err := os.Lstat(known.path); err != nil {
				known.path = path
			}
			return nil
		}
		if most--; most < 0 {
			return fs.SkipAll
		}
		c.denied[id] = &deniedFile{path, covered(names)}
		return nil
	})
}

// linked returns denied files that have more names than were covered, and counts those from now on. What is gone is forgotten.
func (c *Sandbox) linked() []string {
	var fresh []string
	for id, file := range c.denied {
		info, err := os.Lstat(file.path)
		if err != nil {
			delete(c.denied, id)
			continue
		}
		switch now, names := identify(info); {
		case now != id:
			delete(c.denied, id)
			fresh = append(fresh, file.path)
		case names > file.names:
			fresh = append(fresh, file.path)
			file.names = names
		default:
			file.names = names
		}
	}
	return fresh
}

// isLinked reports whether a file that has appeared is another name of a denied one.
func (c *Sandbox) isLinked(file *coveredFile) bool {
	id, names := identify(file.info)
	return names > 1 && file.info.Mode().IsRegular() && c.denied[id] != nil
}

// linkedAnew covers the new names of denied files after a watch has told of a change of one.
func (cs *Pool) linkedAnew(c *Sandbox, path string) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c.life.Err() != nil || !c.isDenied(path) {
		return
	}
	if fresh := c.linked(); len(fresh) > 0 && c.deny(fresh...) != nil {
		c.failed = true
		cs.log.Warn("a denied file has a new name that could not be hidden from the commands that run; their sandbox is not used again")
	}
}

// isDenied reports whether a path is one that denied files are looked at by.
func (c *Sandbox) isDenied(path string) bool {
	info, err := os.Lstat(path)
	if err != nil {
		return false
	}
	id, _ := identify(info)
	file := c.denied[id]
	return file != nil && file.path == path
}

// watchDenied watches denied files themselves: the system tells of a new name at the file, wherever the name is.
func (c *Sandbox) watchDenied() {
	for _, file := range c.denied {
		if !c.watchFor(file.path) {
			return
		}
	}
}
