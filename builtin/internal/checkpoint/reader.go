package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/search/walk"
)

// reader reads the files of a root and keeps their contents.
type reader struct {
	root     *walk.Root
	contents *contents
	maxFile  int64
	skipped  map[string]string // path -> why it could not be read
	hidden   func(path string, info walk.Info) bool
}

// read reads the file, link or directory at a path, and keeps its content.
func (r *reader) read(path string, info walk.Info, ignored bool) *entry {
	e := &entry{state: State{Mode: modeOf(info)}, stamp: info.Stamp, looked: time.Now().UnixNano()}
	switch {
	case info.Mode&fs.ModeSymlink != 0:
		target, err := r.root.Readlink(path)
		if err != nil && !walk.IsGone(err) {
			r.skip(path, err)
		}
		e.state = State{Kind: Link, Link: target}
		return e
	case info.Kind != walk.File:
		e.state.Kind, e.state.Stamp = Special, info.Name()
		return e
	}
	e.state.Kind, e.state.Size, e.state.time, e.state.Stamp = File, info.Size, info.Change, info.Name()
	limit := r.maxFile
	if ignored {
		limit = min(limit, MaxIgnoredFile)
	}
	if info.Size > limit {
		e.why = fmt.Sprintf("it is larger than %d MiB", limit>>20)
		return e
	}
	content, found, err := r.readFile(path, info, limit)
	if err != nil {
		e.why = err.Error()
		return e
	}
	delete(r.skipped, path)
	e.stamp, e.state.Mode = found.Stamp, modeOf(found)
	e.state.Size, e.state.time, e.state.Stamp = int64(len(content)), 0, ""
	e.state.Sum, e.source, err = r.contents.keep(content)
	if err != nil {
		e.why = err.Error()
	}
	return e
}

// errChanging is the reason why a file that other programs write is not kept.
var errChanging = errors.New("it changed while it was read")

// readFile reads a file, and verifies that it did not change meanwhile.
func (r *reader) readFile(path string, info walk.Info, limit int64) (content []byte, found walk.Info, err error) {
	for range 2 {
		if content, found, err = r.readOnce(path, info, limit); err != errChanging {
			break
		}
	}
	if err != nil && !walk.IsGone(err) && err != errChanging {
		r.skip(path, err)
	}
	return content, found, err
}

// readOnce reads the file that info describes, and no file that has replaced it, which may be hidden.
func (r *reader) readOnce(path string, info walk.Info, limit int64) ([]byte, walk.Info, error) {
	h, err := r.root.Open(path)
	if err != nil {
		return nil, walk.Info{}, err
	}
	defer h.Close()
	before, err := h.Stat()
	if err != nil || before.Inode != info.Inode || before.Device != info.Device || before.Kind != walk.File ||
		before.Size > limit ||
		r.hidden != nil && r.hidden(path, before) {
		return nil, walk.Info{}, errors.Join(errChanging, err)
	}
	r.contents.scratch = slices.Grow(r.contents.scratch[:0], int(before.Size)+1)
	n, err := h.ReadAt(r.contents.scratch[:before.Size+1], 0)
	if after, statErr := h.Stat(); statErr != nil || after.Stamp != before.Stamp || int64(n) != before.Size {
		return nil, walk.Info{}, errChanging
	}
	if err != nil && n < int(before.Size) {
		return nil, walk.Info{}, err
	}
	return r.contents.scratch[:n], before, nil
}

func (r *reader) skip(rel string, err error) {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	r.skipped[rel] = err.Error()
}
