package resultstore

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
)

// The key of the names of directories is stored twice: without it, results that were stored before are not found again.
const (
	copyName = "key.copy"    // the key, and the SHA-256 of it
	oddName  = "key.damaged" // a damaged key that was replaced
)

// DamagedKey is the name, in the directory of a [Store], of a damaged key that was replaced.
const DamagedKey = oddName

// loadKey reads the key of the names of directories, or writes a new one. A damaged key is set aside and replaced by
// its copy. If the copy is damaged too, a new key is made: results that were stored before stay in place until they
// are too old.
func (h *rootDir) loadKey(cfg Config) error {
	key, found, err := h.readKey()
	if err != nil {
		return err
	}
	twin := h.copiedKey()
	if key != nil && (twin == nil || bytes.Equal(key, twin)) {
		h.key = key
		if twin != nil {
			return nil
		}
		return h.replaceFile(copyName, withSum(key))
	}
	if twin != nil {
		h.key = twin
	} else if h.key == nil {
		h.key = make([]byte, keyLength)
		rand.Read(h.key) // never fails
	}
	if found {
		if err := h.root.Rename(keyName, oddName); err != nil {
			return err
		}
		cfg.Log.Warn("the key of kept results was damaged and was replaced", "by its copy", twin != nil,
			"directory", h.dir)
	}
	return errors.Join(h.replaceFile(keyName, h.key), h.replaceFile(copyName, withSum(h.key)))
}

// readKey returns the stored key, and whether a file has its name. The key is nil if there is no file, or if it is a
// pipe, which would block, or is not a key.
func (h *rootDir) readKey() (key []byte, found bool, err error) {
	info, err := h.root.Stat(keyName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, true, err
	}
	if !info.Mode().IsRegular() || info.Size() != keyLength {
		return nil, true, nil
	}
	if key, err = h.root.ReadFile(keyName); err != nil || isBlank(key) {
		return nil, true, err
	}
	return key, true, nil
}

// copiedKey returns the copy of the key, nil if there is none that is intact.
func (h *rootDir) copiedKey() []byte {
	info, err := h.root.Lstat(copyName)
	if err != nil || !info.Mode().IsRegular() || info.Size() != keyLength+sha256.Size {
		return nil
	}
	raw, err := h.root.ReadFile(copyName)
	if err != nil || len(raw) != keyLength+sha256.Size || !bytes.Equal(raw, withSum(raw[:keyLength])) ||
		isBlank(raw[:keyLength]) {
		return nil
	}
	return raw[:keyLength]
}

func withSum(key []byte) []byte {
	sum := sha256.Sum256(key)
	return append(bytes.Clone(key), sum[:]...)
}

// isBlank reports whether all bytes are the same, as in a file after a crash.
func isBlank(key []byte) bool { return bytes.Count(key, key[:1]) == len(key) }

// replaceFile replaces whatever has the name with a file of this content.
func (h *rootDir) replaceFile(name string, content []byte) error {
	temp := name + ".new"
	if err := h.removeIfThere(temp); err != nil { // a kill leaves one
		return err
	}
	f, err := h.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = h.root.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, h.removeIfThere(temp))
	}
	return nil
}
