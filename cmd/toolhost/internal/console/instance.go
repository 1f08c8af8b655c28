package console

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/toolhost/toolhost/guard/privatefile"
)

// Folder is the directory below the state directory that says which consoles can be opened.
const Folder = "console"

// An Instance is a console that can be opened now.
type Instance struct {
	ID    string    `json:"id"`
	PID   int       `json:"pid"`
	Kind  string    `json:"kind"` // stdio or http
	Roots []string  `json:"roots"`
	Began time.Time `json:"began"`
	// URL is where it listens; empty when it listens on a socket in its folder.
	URL string `json:"url,omitempty"`
	// Code logs in one browser.
	Code string `json:"code"`

	dir string
}

// Socket is the path of the socket that a console without a URL listens on.
func (i Instance) Socket() string { return filepath.Join(i.dir, i.ID+".sock") }

// Link opens a console that listens at url. The code is in the part that browsers do not send.
func Link(url, code string) string { return url + "/enter#" + code }

// An instanceFile is the place of an instance on disk. A lock, which ends with the process, says that it is alive.
type instanceFile struct {
	file Instance
	lock *flock.Flock
}

func (i Instance) path(suffix string) string { return filepath.Join(i.dir, i.ID+suffix) }

// openInstanceFile takes the place of an instance. Nothing is written before [instanceFile.write].
func openInstanceFile(state string, i Instance) (*instanceFile, error) {
	i.dir = filepath.Join(state, Folder)
	if err := os.MkdirAll(i.dir, 0o700); err != nil {
		return nil, err
	}
	_, _ = Find(state) // removes what killed hosts left
	r := &instanceFile{file: i, lock: newLock(i)}
	ok, err := r.lock.TryLock()
	if err == nil && !ok {
		err = errors.New("another process holds its lock")
	}
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", i.path(".lock"), err)
	}
	return r, nil
}

// newLock returns the lock of an instance. A pipe in its place is not waited for.
func newLock(i Instance) *flock.Flock {
	return privatefile.NewLock(i.path(".lock"))
}

// write replaces the file, so that no process reads half of it. Only the owner can read it.
func (r *instanceFile) write() error {
	raw, err := json.Marshal(r.file)
	if err != nil {
		return err
	}
	return privatefile.ReplaceQuickly(r.file.path(".json"), append(raw, '\n'))
}

// remove gives the place up.
func (r *instanceFile) remove() error {
	return errors.Join(r.file.forget(), r.lock.Unlock(), ignoreNotExist(os.Remove(r.file.path(".lock"))))
}

func (i Instance) forget() error {
	return errors.Join(ignoreNotExist(os.Remove(i.path(".json"))), ignoreNotExist(os.Remove(i.Socket())))
}

func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Find lists the consoles that can be opened, oldest first, and removes what killed hosts left.
func Find(state string) ([]Instance, error) {
	dir := filepath.Join(state, Folder)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, ignoreNotExist(err)
	}
	var all []Instance
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".json")
		i := Instance{dir: dir, ID: id}
		if !ok {
			i.ID, ok = strings.CutSuffix(e.Name(), ".lock")
			if _, err := os.Lstat(i.path(".json")); ok && errors.Is(err, fs.ErrNotExist) && isOld(e) {
				i.alive() // its host was killed before it wrote the file
			}
			continue
		}
		if !e.Type().IsRegular() { // a pipe would be waited for
			continue
		}
		raw, err := os.ReadFile(i.path(".json"))
		if err != nil || json.Unmarshal(raw, &i) != nil || i.ID != id || !i.alive() {
			continue
		}
		all = append(all, i)
	}
	slices.SortFunc(all, func(a, b Instance) int { return cmp.Or(a.Began.Compare(b.Began), strings.Compare(a.ID, b.ID)) })
	return all, nil
}

// startTime is how long a console may take at most between the lock and the file of its instance.
const startTime = time.Minute

func isOld(e fs.DirEntry) bool {
	info, err := e.Info()
	return err == nil && time.Since(info.ModTime()) > startTime
}

// alive reports whether the instance's process holds its lock. What a dead one left is removed.
func (i Instance) alive() bool {
	lock := newLock(i)
	free, err := lock.TryLock()
	if err != nil || !free {
		return err == nil
	}
	// The next run finds what cannot be removed now.
	_ = errors.Join(i.forget(), lock.Unlock(), ignoreNotExist(os.Remove(i.path(".lock"))))
	return false
}
