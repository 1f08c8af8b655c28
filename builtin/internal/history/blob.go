package history

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// A Blob stands for a content. The zero Blob stands for no file. Blobs are equal if the contents are.
type Blob struct {
	Sum  string `json:"sum"`  // SHA-256, in lower-case hexadecimal
	Size int64  `json:"size"` // bytes
}

// BlobOf returns what stands for a content, which may come in pieces and may be empty, but is there.
func BlobOf(content ...[]byte) Blob {
	hash := sha256.New()
	size := 0
	for _, piece := range content {
		hash.Write(piece)
		size += len(piece)
	}
	return Blob{Sum: hex.EncodeToString(hash.Sum(nil)), Size: int64(size)}
}

// IsZero reports whether b stands for no file.
func (b Blob) IsZero() bool { return b == Blob{} }

func (b Blob) valid() bool { return b.IsZero() || b.Size >= 0 && sumNames.MatchString(b.Sum) }

// String returns the beginning of the hash and the size.
func (b Blob) String() string {
	if b.IsZero() {
		return "no file"
	}
	return fmt.Sprintf("%.8s (%d bytes)", b.Sum, b.Size)
}

// errOther says that there is something, but no regular file.
var errOther = errors.New("it is not a regular file")

// Look returns what stands for the content of a file as it is now, the zero Blob if there is none. What is not a regular file, a
// symbolic link included, is an error.
func Look(path string) (Blob, error) {
	f, err := openRegular(path)
	if err != nil || f == nil {
		return Blob{}, err
	}
	defer f.Close()
	hash := sha256.New()
	n, err := io.Copy(hash, f)
	if err != nil {
		return Blob{}, err
	}
	return Blob{Sum: hex.EncodeToString(hash.Sum(nil)), Size: n}, nil
}

// openRegular opens a regular file without waiting for the other end of a FIFO. It returns nil if there is nothing.
func openRegular(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || isNotDir(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errOther
	}
	f, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, err
	}
	opened, err := f.Stat()
	if err == nil && !os.SameFile(info, opened) {
		err = errors.New("another file was put in its place just now")
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (j *journal) blobPath(b Blob) string { return filepath.Join(j.dir, blobsName, b.Sum) }

// has reports whether a content is kept, by its size: one that a power loss cut short is stored again.
func (j *journal) has(b Blob) bool {
	info, err := os.Lstat(j.blobPath(b))
	return err == nil && info.Mode().IsRegular() && info.Size() == b.Size
}

// content returns a content after checking that it is what was stored. What is damaged is set aside.
func (j *journal) content(b Blob) ([]byte, error) {
	if b.IsZero() || !b.valid() {
		return nil, ErrNotKept
	}
	raw, err := os.ReadFile(j.blobPath(b))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotKept
	}
	if err != nil {
		return nil, err
	}
	if BlobOf(raw) != b {
		return nil, errors.Join(fmt.Errorf("%s: %w", b, ErrDamaged), j.setAside(b))
	}
	return raw, nil
}

// setAside takes a damaged content out of use. Somebody may have stored it anew meanwhile, hence the second look under the lock.
func (j *journal) setAside(b Blob) error {
	return j.locked(func() error {
		now, err := Look(j.blobPath(b))
		if err == nil && (now == b || now.IsZero()) {
			return nil
		}
		if err := os.MkdirAll(filepath.Join(j.dir, asideName), ownerDir); err != nil {
			return err
		}
		return os.Rename(j.blobPath(b), filepath.Join(j.dir, asideName, b.Sum))
	})
}

// A staged content is about to be kept.
type staged struct {
	blob    Blob
	content [][]byte
	keep    bool   // it is there, and not too large
	temp    string // path of the file it was written to, "" if none
	made    bool   // the content was not kept before
}

// stage names a content by its hash and, if it is not kept yet, writes it to a file that is not in use.
func (j *journal) stage(content [][]byte, limit int64, sync bool) (staged, error) {
	st := staged{blob: BlobOf(content...), content: content}
	st.keep = st.blob.Size <= limit
	if !st.keep || j.has(st.blob) {
		return st, nil
	}
	var err error
	st.temp, err = j.writeTemp(content, sync)
	return st, err
}

// settle puts a staged content in use. Callers hold the lock.
func (j *journal) settle(st *staged, sync bool) error {
	if !st.keep || j.has(st.blob) { // another change may have stored it since
		return nil
	}
	if st.temp == "" { // it was there, and has been removed for the quota since
		var err error
		if st.temp, err = j.writeTemp(st.content, sync); err != nil {
			return err
		}
	}
	if err := os.Rename(st.temp, j.blobPath(st.blob)); err != nil {
		return err
	}
	st.temp, st.made = "", true
	return nil
}

// discard removes what was staged and not put in use.
func (st *staged) discard() {
	if st.temp != "" {
		_ = os.Remove(st.temp) // else it goes when the journal is tidied
		st.temp = ""
	}
}

// writeTemp writes a file whose name tells whose it is. On an error nothing is left.
func (j *journal) writeTemp(content [][]byte, sync bool) (string, error) {
	path := filepath.Join(j.dir, blobsName, j.owner+tempMark+shortID())
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, ownerFile)
	if err != nil {
		return "", err
	}
	for _, piece := range content {
		if err == nil {
			_, err = f.Write(piece)
		}
	}
	if err == nil && sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(path))
	}
	return path, nil
}
