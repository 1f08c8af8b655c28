package checkpoint

import "io/fs"

// Kind is the kind of a directory entry.
type Kind uint8

// The kinds.
const (
	Absent Kind = iota
	File
	Link
	Dir
	Special // a pipe, a socket, a device
)

// State is the kept state of a path.
type State struct {
	Kind Kind
	Mode fs.FileMode // permission bits, with setuid, setgid and sticky
	Size int64       // bytes of a file
	Sum  Sum         // SHA-256 of a file's content; zero if it was not read
	Link string      // the target of a link
	// Stamp is the name of the [walk.Stamp] of what was not read, such as a large file or a pipe.
	Stamp string
	time  int64 // of the last change of a file that was not read
}

// same reports whether two states are equal.
func (s State) same(o State) bool {
	s.Stamp = o.Stamp
	return s == o
}

// Sum is a SHA-256.
type Sum [32]byte

// Change is the difference that a command made at one path.
type Change struct {
	Path          string // relative to the root, with slashes
	Before, After State
	Links         []string // other names of the file from before
	// Why says why the content of Before is not kept; "" if it is, or Before is no file.
	Why     string
	source  source
	between bool // another command began between two changes of the path
}

// IsBack reports whether the path is as it was before: the command changed it and changed it back, and another one
// began in between.
func (c Change) IsBack() bool { return c.between && c.Before.same(c.After) }

// IsDir reports whether the path was or is a directory, and nothing else.
func (c Change) IsDir() bool {
	isDir := func(s State) bool { return s.Kind == Dir || s.Kind == Absent }
	return isDir(c.Before) && isDir(c.After)
}

// Report describes the changes during a command.
type Report struct {
	Changes []Change // sorted by path, each directory before its entries
	Ignored int      // files that changed in ignored directories, which are not kept
	// Notes say what was not covered.
	Notes []string
	// HeadMoved says that another commit is checked out.
	HeadMoved bool

	store *contents
	end   func() // closes the store of a settled command; nil: the tracker does
}

// Content returns the old content of a file, or the old target of a link, of a change whose Why is empty.
func (r *Report) Content(c Change) ([]byte, error) {
	if c.Before.Kind == Link {
		return []byte(c.Before.Link), nil
	}
	return r.store.read(c.source, c.Before)
}

// Close releases the contents of the report.
func (r *Report) Close() {
	for _, c := range r.Changes {
		r.store.release(c.source)
	}
	r.Changes = nil
	if r.end != nil {
		r.end()
	}
}
