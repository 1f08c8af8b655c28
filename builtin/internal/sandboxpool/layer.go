package sandboxpool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gofrs/flock"

	"github.com/toolhost/toolhost/guard/privatefile"
	"github.com/toolhost/toolhost/guard/sandbox"
)

// maxLayered bounds how many entries of one directory of the host are seen in a layer: each is a mount.
const maxLayered = 512

// A layer is a private directory in the place of one of the host.
type layer struct {
	name, dir string
	seed      []string // names
}

// open makes mount points for the visible entries of the host. The lock is held while the layer is in use: mount
// points that are no longer needed are removed only when no process holds it.
func (l layer) open(hidden func(path string, dir bool) bool) (p sandbox.Private, lock *flock.Flock, err error) {
	p = sandbox.Private{Name: l.name, Dir: l.dir}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return p, nil, err
	}
	record := l.dir + ".points"
	lock = privatefile.NewLock(record + ".lock")
	if alone, err := lock.TryLock(); err == nil && alone {
		l.clear(record)
	}
	if err := lock.RLock(); err != nil {
		return p, nil, fmt.Errorf("the lock of %s: %w", l.dir, err)
	}
	entries, err := os.ReadDir(l.name)
	if err != nil {
		return p, lock, errors.Join(err, lock.Unlock())
	}
	var made []string
	for _, e := range entries[:min(len(entries), maxLayered)] {
		path, point := filepath.Join(l.name, e.Name()), filepath.Join(l.dir, e.Name())
		if hidden(path, e.IsDir()) {
			continue
		}
		if slices.Contains(l.seed, e.Name()) {
			seed(path, point, hidden)
			continue
		}
		fresh, err := place(e, path, point)
		if err != nil {
			continue // the program has something of its own there
		}
		if fresh {
			made = append(made, e.Name())
		}
		if e.Type()&fs.ModeSymlink == 0 {
			p.Shown = append(p.Shown, e.Name())
		}
	}
	return p, lock, note(record, made)
}

// openLayers opens the layers of an agent. Their locks are held until the sandbox is closed.
func openLayers(c *Sandbox, agent *Agent) (list []sandbox.Private, err error) {
	if agent == nil {
		return nil, nil
	}
	for name, dir := range agent.Layers {
		l := layer{name: name, dir: dir}
		for _, path := range agent.Seed {
			if filepath.Dir(path) == name {
				l.seed = append(l.seed, filepath.Base(path))
			}
		}
		p, lock, err := l.open(c.policy.Commands().Hidden)
		if lock != nil {
			c.locks = append(c.locks, lock)
		}
		if err != nil {
			return nil, fmt.Errorf("the private directory in the place of %s: %w", name, err)
		}
		list = append(list, p)
	}
	return list, nil
}

// unlock gives up the locks of layers and of overlays, and the SSH agent.
func (c *Sandbox) unlock() {
	if c.ssh != nil {
		_ = c.ssh.Close()
	}
	for _, lock := range c.locks {
		_ = lock.Close()
	}
	if c.overlay != nil {
		_ = c.overlay.Close()
	}
}

// place creates the mount point of an entry of the host, an empty file or directory, or a copy of a link.
func place(e fs.DirEntry, path, point string) (fresh bool, err error) {
	switch {
	case e.IsDir():
		err = os.Mkdir(point, 0o700)
	case e.Type().IsRegular():
		var f *os.File
		if f, err = os.OpenFile(point, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err == nil {
			err = f.Close()
		}
	case e.Type()&fs.ModeSymlink != 0:
		to, err := os.Readlink(path)
		if err == nil {
			err = os.Symlink(to, point)
		}
		return err == nil, err
	default:
		return false, errors.ErrUnsupported
	}
	if err == nil {
		return true, nil
	}
	info, statErr := os.Lstat(point)
	if statErr != nil || info.Mode().Type() != e.Type() || !empty(point, info) {
		return false, err
	}
	return false, nil
}

func empty(path string, info fs.FileInfo) bool {
	if !info.IsDir() {
		return info.Size() == 0
	}
	entries, err := os.ReadDir(path)
	return err == nil && len(entries) == 0
}

// note adds names to the record of mount points.
func note(record string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	f, err := os.OpenFile(record, os.O_CREATE|os.O_APPEND|os.O_WRONLY|privatefile.NoFollow, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.Join(names, "\x00") + "\x00")
	return errors.Join(err, f.Close())
}

// clear removes the mount points in a record that are still empty.
func (l layer) clear(record string) {
	names, _ := os.ReadFile(record) // none, if there is no record
	for name := range strings.SplitSeq(string(names), "\x00") {
		path := filepath.Join(l.dir, name)
		info, err := os.Lstat(path)
		if name != "" && err == nil && (info.Mode()&fs.ModeSymlink != 0 || empty(path, info)) {
			_ = os.Remove(path)
		}
	}
	_ = os.Remove(record)
}

// Limits of copies into a layer.
const (
	maxSeed      = 64 << 20 // bytes
	maxSeedFiles = 4096
)

// seed copies a file or directory of the host, except hidden entries, if the layer has none of that name or an older
// file. It writes nothing outside of the layer, whatever links a program has left in it.
func seed(from, to string, hidden func(path string, dir bool) bool) {
	old, err := os.Lstat(to)
	now, statErr := os.Stat(from)
	if statErr != nil || err == nil && (now.IsDir() || !now.ModTime().After(old.ModTime())) {
		return
	}
	root, err := os.OpenRoot(filepath.Dir(to))
	if err != nil {
		return
	}
	defer root.Close()
	size, files := int64(0), 0
	_ = filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if hidden(path, e.IsDir()) {
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		info, err := e.Info()
		switch into := filepath.Join(filepath.Base(to), rel); {
		case err != nil:
			return nil
		case e.IsDir():
			return root.MkdirAll(into, 0o700)
		case !info.Mode().IsRegular():
			return nil
		default:
			if size, files = size+info.Size(), files+1; size > maxSeed || files > maxSeedFiles {
				return fs.SkipAll
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return nil
			}
			return replace(root, into, text, info.Mode().Perm()&0o700|0o600)
		}
	})
}

// replace creates a file and removes what had its name, which may be a link or a pipe.
func replace(root *os.Root, name string, text []byte, mode fs.FileMode) error {
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
