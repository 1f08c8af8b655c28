package readstate

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/toolhost/toolhost/guard/privatefile"
	"github.com/toolhost/toolhost/guard/statedir"
)

const (
	lockName    = "lock"
	scopeSuffix = ".scope"
	tempSuffix  = ".tmp"

	// maxScopeFile bounds what is read of one file; 4096 records take about 2 MB.
	maxScopeFile = 32 << 20
	// maxScopesKept and maxScopeAge bound the directory: conversations older than a month are over.
	maxScopesKept = 4096
	maxScopeAge   = 30 * 24 * time.Hour
	// sweepEvery is how often a running process looks for files beyond these bounds.
	sweepEvery = time.Hour
)

// names matches the names that a sweep may remove, whatever directory was configured; the group is set for temporary
// files.
var names = regexp.MustCompile(`^[0-9a-f]{64}\.scope(?:\.damaged|\.corrupt|\.[A-Z2-7]{26}(\.tmp))?$`)

// disk holds exact scopes, one file each. Files are replaced by rename under a lock on the directory, so a reader
// needs no lock and sees an old or a new file, never a partial one. There is no fsync: a power failure may lose
// files, which the checksum detects.
type disk struct {
	dir    string
	root   *os.Root
	logger *slog.Logger
	swept  time.Time // guarded by Store.flushing once open
}

func openDisk(dir string, logger *slog.Logger) (*disk, error) {
	if err := privatefile.MakeDir(dir); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	d := &disk{dir: dir, root: root, logger: logger}
	if err := d.locked(d.sweep); err != nil {
		logger.Warn("read state directory not tidied", "error", err)
	}
	return d, nil
}

func (d *disk) close() error { return d.root.Close() }

// locked runs do while no other process, and no other Store of this one, changes the directory.
func (d *disk) locked(do func() error) error {
	return privatefile.Locked(filepath.Join(d.dir, lockName), do)
}

// fileName returns the name of a scope's file: keys hold names that may be long, secret, or not valid as file names.
func fileName(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:]) + scopeSuffix
}

// load returns the records of a scope, none if it is not known. A damaged file is set aside and reported, and counts
// as empty.
func (d *disk) load(key string) (map[string]record, error) {
	name := fileName(key)
	data, err := d.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var files map[string]record
	if err == nil {
		files, err = decode(data)
	}
	if errors.Is(err, errCorrupt) {
		aside, asideErr := statedir.SetAside(filepath.Join(d.dir, name))
		d.logger.Warn("read state set aside; its files count as not read", "file", aside, "error",
			errors.Join(err, asideErr))
		return nil, nil
	}
	return files, err
}

func (d *disk) read(name string) ([]byte, error) {
	info, err := d.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxScopeFile {
		return nil, fmt.Errorf("%w: %v of %d bytes", errCorrupt, info.Mode().Type(), info.Size())
	}
	f, err := d.root.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxScopeFile))
	return data, errors.Join(err, f.Close())
}

// merge writes a scope, merged with what other processes have written of it since: of two records of one file the
// newer counts. It returns the records that it wrote.
func (d *disk) merge(key string, files map[string]record, limit int) (map[string]record, error) {
	err := d.locked(func() error {
		theirs, err := d.load(key)
		if err != nil {
			return err
		}
		mergeInto(files, theirs)
		trim(files, limit)
		data, err := encode(files)
		if err != nil {
			return err
		}
		if err := d.write(fileName(key), data); err != nil {
			return err
		}
		if time.Since(d.swept) > sweepEvery {
			return d.sweep()
		}
		return nil
	})
	return files, err
}

// write replaces a file. A kill may leave a temporary file, which the next sweep removes.
func (d *disk) write(name string, data []byte) error {
	temp := name + "." + rand.Text() + tempSuffix
	f, err := d.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = d.root.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, d.root.Remove(temp))
	}
	return nil
}

// sweep removes temporary files of killed processes and files beyond the bounds. Callers hold the lock, without which
// no temporary files exist.
func (d *disk) sweep() error {
	d.swept = time.Now()
	keep := statedir.Limits{Age: maxScopeAge, Files: maxScopesKept}
	return statedir.Sweep(d.root, keep, func(e fs.DirEntry) statedir.Kind {
		switch ours := names.FindStringSubmatch(e.Name()); {
		case ours == nil:
			return statedir.Foreign
		case ours[1] != "":
			return statedir.Unfinished
		}
		return statedir.Kept
	})
}
