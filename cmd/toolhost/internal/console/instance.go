package console

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/guard/privatefile"
	"github.com/toolhost/toolhost/guard/statedir"
)

// Folder is the directory below the state directory that has a file for each console that can be opened.
const Folder = "console"

// An Instance is a console that can be opened now.
type Instance struct {
	ID    string    `json:"id"`
	PID   int       `json:"pid"`
	Kind  string    `json:"kind"` // stdio or http
	Roots []string  `json:"roots"`
	Began time.Time `json:"began"`
	// URL is the address that it listens on; "" if it listens on a socket in the folder.
	URL string `json:"url,omitempty"`
	// Code logs in one browser.
	Code string `json:"code"`

	dir string
}

// Socket is the path of the socket that a console without a URL listens on.
func (i Instance) Socket() string { return filepath.Join(i.dir, i.ID+".sock") }

// Link returns a link that opens a console listening at url. The code is in the fragment, which browsers do not send.
func Link(url, code string) string { return url + "/enter#" + code }

// maxInstance bounds the file of an instance, in bytes.
const maxInstance = 1 << 20

// An instanceFile is the file by which an instance is found.
type instanceFile struct {
	file Instance
	mark *statedir.Mark
}

func (i Instance) path(suffix string) string { return filepath.Join(i.dir, i.ID+suffix) }

// openInstanceFile reserves the file names of an instance. It does not write the file: see [instanceFile.write].
func openInstanceFile(state string, i Instance) (*instanceFile, error) {
	i.dir = filepath.Join(state, Folder)
	if err := os.MkdirAll(i.dir, 0o700); err != nil {
		return nil, err
	}
	_, _ = Find(state) // removes what killed hosts have left
	mark, err := statedir.Own(i.path(".lock"))
	if err != nil {
		return nil, err
	}
	return &instanceFile{file: i, mark: mark}, nil
}

// write replaces the file atomically. Only the owner can read it.
func (r *instanceFile) write() error {
	raw, err := json.Marshal(r.file)
	if err != nil {
		return err
	}
	return privatefile.ReplaceQuickly(r.file.path(".json"), append(raw, '\n'))
}

// remove removes the files of the instance and releases its lock.
func (r *instanceFile) remove() error { return r.mark.Release(r.file.forget) }

func (i Instance) forget() error {
	return errors.Join(ignoreNotExist(os.Remove(i.path(".json"))), ignoreNotExist(os.Remove(i.Socket())))
}

func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Find returns the consoles that can be opened, oldest first, and removes what killed hosts have left.
func Find(state string) ([]Instance, error) {
	dir := filepath.Join(state, Folder)
	names, err := statedir.Owned(dir, func(name string) error { return Instance{dir: dir, ID: name}.forget() })
	var all []Instance
	for _, name := range names {
		i := Instance{dir: dir, ID: name}
		raw, err := privatefile.Read(i.path(".json"), maxInstance)
		if err != nil || json.Unmarshal(raw, &i) != nil || i.ID != name {
			continue // it is just starting or ending
		}
		all = append(all, i)
	}
	slices.SortFunc(all, func(a, b Instance) int { return cmp.Or(a.Began.Compare(b.Began), strings.Compare(a.ID, b.ID)) })
	if all == nil {
		return nil, err
	}
	return all, nil
}
