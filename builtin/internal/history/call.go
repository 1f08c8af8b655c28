package history

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// maxCommand is how much of a command line the history keeps, in bytes.
const maxCommand = 4 << 10

// A Call is what the history knows of a command.
type Call struct {
	Command   string   `json:"command,omitempty"`    // the command line, of which the beginning is kept
	Ignored   int      `json:"ignored,omitempty"`    // files in ignored directories that changed, which are not kept
	Notes     []string `json:"notes,omitempty"`      // what was not covered
	HeadMoved bool     `json:"head_moved,omitempty"` // git had another commit checked out afterwards
}

func (c Call) isZero() bool {
	return c.Command == "" && c.Ignored == 0 && len(c.Notes) == 0 && !c.HeadMoved
}

// A Node is what stands at a path. The zero Node stands for nothing.
type Node struct {
	Blob // of a file, and of the target of a link
	// Mode has the permissions and the kind. It is zero where only the content of a regular file counts.
	Mode fs.FileMode
}

// IsAbsent reports whether nothing stands there.
func (n Node) IsAbsent() bool { return n == Node{} }

// IsFile reports whether it is a regular file.
func (n Node) IsFile() bool { return n.Mode.IsRegular() && !n.IsAbsent() }

// same reports whether two nodes are equal, as far as both are known.
func (n Node) same(o Node) bool {
	if n.Blob != o.Blob || n.IsAbsent() != o.IsAbsent() {
		return false
	}
	return n.Mode == o.Mode || n.Mode == 0 && o.Mode.IsRegular() || o.Mode == 0 && n.Mode.IsRegular()
}

// modeBits are the bits of a mode that are kept.
const modeBits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky | fs.ModeDir | fs.ModeSymlink

// NodeAt returns what stands at a path now.
func NodeAt(path string) (Node, error) {
	if _, err := os.Lstat(path); isGone(err) {
		return Node{}, nil
	}
	dir, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return Node{}, err
	}
	defer dir.Close()
	return NodeIn(dir, filepath.Base(path))
}

// NodeIn returns what stands at a name in an open directory.
func NodeIn(dir *os.Root, name string) (Node, error) {
	info, err := dir.Lstat(name)
	if isGone(err) {
		return Node{}, nil
	}
	if err != nil {
		return Node{}, err
	}
	n := Node{Mode: info.Mode() & modeBits}
	switch {
	case info.IsDir():
	case info.Mode().IsRegular():
		n.Blob, err = HashFile(filepath.Join(dir.Name(), name))
	case info.Mode()&fs.ModeSymlink != 0:
		var target string
		target, err = dir.Readlink(name)
		n = Node{BlobOf([]byte(target)), fs.ModeSymlink}
	default:
		n.Mode |= fs.ModeIrregular
	}
	return n, err
}

// A PathChange is what a command changed at one path.
type PathChange struct {
	Path          string // absolute
	Before, After Node
	Lost          string // why what stood there before cannot be restored; "" if it can
	Content       func() ([]byte, error)
	Target        string // of the link that stands there now
}

// Record journals what a command has changed as one entry. Of c, Principal, Scope, Tool, Time and Call are recorded. What stood there
// before is kept; what stands there now is known by its hash.
func (s *Store) Record(c Change, changes []PathChange) error {
	if s.cfg.Dir == "" || len(changes) == 0 {
		return nil
	}
	if c.Principal == "" {
		return errors.New("a change without a principal cannot be journalled")
	}
	j := s.journal(journalName(c.Principal))
	c.ID, c.Time, c.State = shortID(), c.Time.UTC().Round(0), Done
	c.Command = shortened(c.Command)
	full := false
	record := func() error {
		if err := os.MkdirAll(j.dir, ownerDir); err != nil {
			return err
		}
		return j.locked(func() (err error) {
			full, err = j.record(c, changes)
			return err
		})
	}
	err := record()
	for isFull(err) && s.Shrink() {
		err = record()
	}
	if full {
		s.tidyLater(j)
	}
	return err
}

// record is Record under the lock. It reports whether enough has been added to tidy the journal.
func (j *journal) record(c Change, changes []PathChange) (full bool, err error) {
	number, end := j.packs.number, j.packs.end
	var records []record
	for _, p := range changes {
		r := record{Change: c, owner: j.owners.name}
		r.Path, r.Before, r.After, r.BeforeMode, r.AfterMode = filepath.Clean(p.Path), p.Before.Blob, p.After.Blob, p.Before.Mode, p.After.Mode
		r.Created, r.Deleted, r.Lost = p.Before.IsAbsent(), p.After.IsAbsent(), p.Lost
		if err = j.keep(&r, p); err != nil {
			j.packs.rollback(number, end)
			return false, err
		}
		records = append(records, r)
	}
	return j.add(records, number, end)
}

// keep keeps what stood at a path. What cannot be had is lost; errors are of the journal.
func (j *journal) keep(r *record, p PathChange) (err error) {
	if r.AfterMode&fs.ModeSymlink != 0 {
		if r.at[1], err = j.packs.put(r.After, [][]byte{[]byte(p.Target)}, j.cfg.Sync); err != nil {
			return err
		}
	}
	if r.Lost != "" || r.Before.IsZero() {
		return nil
	}
	if r.Before.Size > j.cfg.MaxFile {
		r.Lost = fmt.Sprintf("it has more than the %d MiB that the history keeps of a file", j.cfg.MaxFile>>20)
		return nil
	}
	content, err := p.Content()
	if err == nil && BlobOf(content) != r.Before {
		err = errors.New("the copy is not what was there")
	}
	if err != nil {
		r.Lost = err.Error()
		return nil
	}
	r.at[0], err = j.packs.put(r.Before, [][]byte{content}, j.cfg.Sync)
	return err
}
