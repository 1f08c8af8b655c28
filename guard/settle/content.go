package settle

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/guard/internal/realpath"
	"github.com/toolhost/toolhost/guard/privatefile"
)

// A stamp tells whether a file may have changed.
type stamp struct {
	Dev, Ino, Names   uint64
	Mode              fs.FileMode
	Size              int64
	Changed, Modified int64 // nanoseconds; commands cannot set the first
}

// racyWindow is how recent a change may be so that another one can have the same time.
const racyWindow = 20 * time.Millisecond

// racy reports whether a file with this stamp could change and have the same stamp.
func (s stamp) racy() bool { return time.Now().UnixNano()-s.Changed < int64(racyWindow) }

func stampOf(info fs.FileInfo) stamp {
	id, names := realpath.Identify(info)
	s := stamp{Dev: id.Device, Ino: id.Inode, Names: names, Mode: info.Mode(), Size: info.Size(),
		Modified: info.ModTime().UnixNano()}
	if at, ok := realpath.Of(info); ok {
		s.Changed = at.UnixNano()
	} else {
		s.Changed = s.Modified
	}
	return s
}

// An identity says what stands at a name: the kind of file, whether it can be executed or other users can write it, and
// a digest of its content, for which CRLF and LF are equal. Absent is the zero value.
type identity string

const absent identity = ""

// maxDigest bounds the files whose content is read. A larger one is told apart by its size and time, and never known.
const maxDigest = 64 << 20

// identify returns the identity of what stands at base in a directory.
func identify(dir *os.Root, base string) (identity, stamp, error) {
	info, err := dir.Lstat(base)
	if missing(err) {
		return absent, stamp{}, nil
	}
	if err != nil {
		return absent, stamp{}, err
	}
	st := stampOf(info)
	switch {
	case info.IsDir():
		return absent, stamp{}, nil // the files in it have identities of their own
	case info.Mode()&fs.ModeSymlink != 0:
		to, err := dir.Readlink(base)
		return linkIdentity(to), st, err
	case !info.Mode().IsRegular():
		return identity(fmt.Sprintf("odd:%d:%v", st.Ino, st.Mode)), st, nil // a pipe, a socket or a device
	case info.Size() > maxDigest:
		return identity(fmt.Sprintf("large:%d:%d", info.Size(), info.ModTime().UnixNano())), st, nil
	}
	f, err := dir.OpenFile(base, os.O_RDONLY|privatefile.NoFollow|privatefile.NoWait, 0)
	if errors.Is(err, fs.ErrPermission) {
		return identity(fmt.Sprintf("unreadable:%d:%d", st.Ino, st.Size)), st, nil
	}
	if err != nil {
		return absent, st, err
	}
	defer f.Close()
	sum := lineSum{Hash: sha256.New()}
	if _, err := io.Copy(&sum, f); err != nil {
		return absent, st, err
	}
	kind := "file"
	if info.Mode()&0o100 != 0 {
		kind = "program"
	}
	if info.Mode()&0o002 != 0 {
		kind += "-open" // other users can write it
	}
	return identity(kind + ":" + hex.EncodeToString(sum.end())), st, nil
}

const linkKind = "link:"

// linkIdentity returns the identity of a symbolic link by what it says.
func linkIdentity(to string) identity {
	sum := sha256.Sum256([]byte(to))
	return identity(linkKind + hex.EncodeToString(sum[:]))
}

func (id identity) isLink() bool { return strings.HasPrefix(string(id), linkKind) }

// isKnowable reports whether two files of this identity have the same content.
func (id identity) isKnowable() bool {
	kind, _, _ := strings.Cut(string(id), ":")
	return kind != "odd" && kind != "large" && kind != "unreadable"
}

// A lineSum is a digest for which CRLF and LF are equal.
type lineSum struct {
	hash.Hash
	cr bool // the last byte was a CR that is not yet in the digest
}

func (s *lineSum) Write(text []byte) (int, error) {
	n := len(text)
	for len(text) > 0 {
		if s.cr && text[0] != '\n' {
			s.Hash.Write([]byte{'\r'})
		}
		s.cr = false
		i := bytes.IndexByte(text, '\r')
		if i < 0 {
			s.Hash.Write(text)
			return n, nil
		}
		s.Hash.Write(text[:i])
		s.cr, text = true, text[i+1:]
	}
	return n, nil
}

func (s *lineSum) end() []byte {
	if s.cr {
		s.Hash.Write([]byte{'\r'})
	}
	return s.Sum(nil)
}

// errOdd reports that a file cannot be copied.
var errOdd = errors.New("it is neither a regular file nor a link")

// copyAs makes a copy of what stands at a name under another one, where nothing may stand, with its mode and times.
func copyAs(from *os.Root, name string, to *os.Root, copied string) (err error) {
	info, err := from.Lstat(name)
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := from.Readlink(name)
		if err != nil {
			return err
		}
		return to.Symlink(target, copied)
	}
	if !info.Mode().IsRegular() {
		return errOdd
	}
	in, err := from.OpenFile(name, os.O_RDONLY|privatefile.NoFollow|privatefile.NoWait, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := to.OpenFile(copied, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in) // which shares the blocks where the file system can
	keepOwner(out, info)
	err = errors.Join(err, out.Chmod(info.Mode().Perm()), out.Close())
	if err == nil {
		err = to.Chtimes(copied, info.ModTime(), info.ModTime())
	}
	if err != nil {
		return errors.Join(err, to.Remove(copied))
	}
	return nil
}

// missing reports whether an error says that nothing has that name, be it because a file is in the place of a
// directory.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
