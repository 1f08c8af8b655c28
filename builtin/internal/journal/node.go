package journal

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/toolhost/toolhost/builtin/internal/search/walk"
)

// A Node is a file, directory or link at a path. The zero Node means that the path does not exist.
type Node struct {
	Blob // of a file, and of the target of a link
	// Mode has the permissions and the type. It is zero if only the content of a regular file is compared.
	Mode fs.FileMode
	// Stamp distinguishes states of what was not read, such as a large file or a pipe. NodeAt always sets it.
	Stamp string
}

// isUnread reports whether the node is identified by its stamp alone.
func (n Node) isUnread() bool {
	return n.Mode&fs.ModeIrregular != 0 || n.Mode != 0 && n.Mode.IsRegular() && n.Blob.IsZero()
}

// IsAbsent reports whether the path does not exist.
func (n Node) IsAbsent() bool { return n == Node{} }

// IsFile reports whether it is a regular file.
func (n Node) IsFile() bool { return n.Mode.IsRegular() && !n.IsAbsent() }

// same reports whether two nodes are equal in the fields that both have.
func (n Node) same(o Node) bool {
	if n.isUnread() || o.isUnread() {
		return n.Stamp != "" && n.Stamp == o.Stamp
	}
	if n.Blob != o.Blob || n.IsAbsent() != o.IsAbsent() {
		return false
	}
	return n.Mode == o.Mode || n.Mode == 0 && o.Mode.IsRegular() || o.Mode == 0 && n.Mode.IsRegular()
}

// NoMode marks the mode of a regular file that has no permissions: a mode of zero means that it is not compared.
const NoMode = fs.ModeTemporary

// modeBits are the bits of a mode that are kept.
const modeBits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky | fs.ModeDir | fs.ModeSymlink

// NodeAt returns the node at a path now. It follows no links: if a directory of the path has become a link, the node
// is absent.
func NodeAt(path string) (Node, error) { return nodeAt(path, io.Discard) }

// nodeAt is NodeAt, and writes the content of a file or the target of a link to w.
func nodeAt(path string, w io.Writer) (n Node, err error) {
	dir, err := walk.OpenRoot(filepath.Dir(path))
	if walk.IsGone(err) {
		return Node{}, nil
	}
	if err != nil {
		return Node{}, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	name := filepath.Base(path)
	info, err := dir.Stat(name)
	if walk.IsGone(err) {
		return Node{}, nil
	}
	if err != nil {
		return Node{}, err
	}
	n.Mode, n.Stamp = info.Mode&modeBits, info.Name()
	switch {
	case info.Kind == walk.Dir:
	case info.Kind == walk.File:
		if n.Mode == 0 {
			n.Mode = NoMode
		}
		n.Blob, err = hashIn(dir, name, w)
	case info.Mode&fs.ModeSymlink != 0:
		var target string
		target, err = dir.Readlink(name)
		n = Node{BlobOf([]byte(target)), fs.ModeSymlink, ""}
		_, _ = io.WriteString(w, target)
	default:
		n.Mode |= fs.ModeIrregular
	}
	return n, err
}

// hashIn returns the Blob of the content of a regular file, which it writes to w.
func hashIn(dir *walk.Root, name string, w io.Writer) (Blob, error) {
	h, err := dir.Open(name)
	if err != nil {
		return Blob{}, err
	}
	defer h.Close()
	if info, err := h.Stat(); err != nil || info.Kind != walk.File {
		return Blob{}, errors.Join(err, errOther)
	}
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(hash, w), io.NewSectionReader(h, 0, 1<<62))
	return BlobOfHash(Sum(hash.Sum(nil)), n), err
}

// Sum is a SHA-256.
type Sum = [sha256.Size]byte

// ContentAt returns the content of a file or the target of a link. It fails if that no longer is n.
func ContentAt(path string, n Node) ([]byte, error) {
	content := bytes.NewBuffer(make([]byte, 0, n.Size))
	now, err := nodeAt(path, content)
	if err == nil && !now.same(n) {
		err = fmt.Errorf("it has changed: %w", ErrNotKept)
	}
	return content.Bytes(), err
}
