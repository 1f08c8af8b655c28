package sandboxpool

import (
	"io/fs"
	"os"
	"path/filepath"
)

// maxDeniedFiles bounds how many denied files are examined for new names before each command, those in denied
// directories included. Each takes about a microsecond.
const maxDeniedFiles = 4096

// maxMaskedFiles bounds the files of each secret path of the home directory. There are few.
const maxMaskedFiles = 64

// A fileID identifies a file, whatever its names are. It is zero if the system has none.
type fileID struct{ device, inode uint64 }

// A deniedFile is a file that rules deny, by one of its denied names.
type deniedFile struct {
	path   string
	names  uint64 // how many it had when all of them were covered
	born   int64  // as of [coveredFile]
	masked bool   // it was noted in a masked path
}

// deniedFiles are files that rules deny, as they were when all their names were covered.
type deniedFiles map[fileID]*deniedFile

// count notes the denied files at or below paths, and how many names they have. A file that is noted already keeps
// its count: a name that it got since is still to be covered.
func (d deniedFiles) count(paths []string) {
	for _, path := range paths {
		d.countIn(path, maxDeniedFiles-len(d), false)
	}
}

// countMasked notes files in masked paths, such as keys. Their other names are not covered yet.
func (d deniedFiles) countMasked(masked []string) {
	for _, path := range masked {
		d.countIn(path, min(maxMaskedFiles, maxDeniedFiles-len(d)), true)
	}
}

// countIn notes files at or below a path, up to a number.
func (d deniedFiles) countIn(path string, most int, masked bool) {
	_ = filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil // what cannot be listed has no names that could be linked
		}
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() {
			return nil
		}
		id, names := identify(info)
		if id == (fileID{}) {
			return nil
		}
		if known := d[id]; known != nil {
			if _, err := os.Lstat(known.path); err != nil {
				known.path = path
			}
			return nil
		}
		if most--; most < 0 {
			return fs.SkipAll
		}
		if masked {
			names = 1
		}
		d[id] = &deniedFile{path, names, born(path), masked}
		return nil
	})
}

// linked returns denied files that have more names than were covered, and records these as covered. It drops files
// that no longer exist.
func (d deniedFiles) linked() []string {
	var fresh []string
	for id, file := range d {
		info, err := os.Lstat(file.path)
		if err != nil {
			delete(d, id)
			continue
		}
		switch now, names := identify(info); {
		case now != id:
			delete(d, id)
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
func (d deniedFiles) isLinked(file *coveredFile) bool {
	id, names := identify(file.info)
	known := d[id]
	if names < 2 || !file.info.Mode().IsRegular() || known == nil || known.born != file.born {
		return false
	}
	if !known.masked {
		return true
	}
	// The host moves files out of its own directory, such as a held one that it puts into the workspace.
	info, err := os.Lstat(known.path)
	return err == nil && os.SameFile(info, file.info)
}

// linkedAnew covers the new names of denied files after a watch has told of a change of one.
func (f follower) linkedAnew(path string) {
	f.box.mu.Lock()
	defer f.box.mu.Unlock()
	if f.box.life.Err() != nil || !f.box.denied.has(path) {
		return
	}
	if fresh := f.box.denied.linked(); len(fresh) > 0 && f.box.deny(fresh...) != nil {
		f.box.failed = true
		f.pool.log.Warn("a denied file has a new name that could not be hidden from the commands that run; their sandbox " +
			"is not used again")
	}
}

// has reports whether a path is one that denied files are examined by.
func (d deniedFiles) has(path string) bool {
	info, err := os.Lstat(path)
	if err != nil {
		return false
	}
	id, _ := identify(info)
	file := d[id]
	return file != nil && file.path == path
}

// addDenied watches denied files themselves: the system tells of a new name at the file, wherever the name is.
func (w *watches) addDenied(files deniedFiles) {
	for _, file := range files {
		if !w.addFile(file.path) {
			return
		}
	}
}
