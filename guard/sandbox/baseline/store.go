package baseline

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/guard/privatefile"
	"github.com/toolhost/toolhost/guard/sandbox"
	"github.com/toolhost/toolhost/guard/statedir"
)

// A record is the baseline of a directory.
type record struct {
	Dir     string
	Files   map[string]file
	Guarded []sandbox.Guarded
}

// with returns the record with f applied to each path in it.
func (r record) with(f func(string) string) record {
	next := record{Dir: f(r.Dir), Guarded: slices.Clone(r.Guarded)}
	for i := range next.Guarded {
		g := &next.Guarded[i]
		g.Path, g.Root, g.Rel, g.Link, g.New = f(g.Path), f(g.Root), f(g.Rel), f(g.Link), f(g.New)
	}
	if r.Files != nil {
		next.Files = make(map[string]file, len(r.Files))
	}
	for path, it := range r.Files {
		it.To = f(it.To)
		next.Files[f(path)] = it
	}
	return next
}

// A store keeps the baseline of a directory, and whether commands run there. Hosts that run now and the next host
// read it. A host holds the lock shared while its commands run, so that a mark without a lock means a killed host.
type store struct {
	path    string // without its suffix; "" where nothing is stored
	lock    *os.File
	written bool // the record is in the file
	unclean bool // something could not be taken out
}

// The content of the lock file while commands run, and otherwise.
var marked, unmarked = []byte{'1'}, []byte{'0'}

const (
	recordSuffix = ".json"
	lockSuffix   = ".lock"
)

// storeOf returns the store of a directory.
func (k *Keeper) storeOf(dir string) *store {
	if k.state == "" {
		return &store{}
	}
	sum := sha256.Sum256([]byte(dir))
	return openStore(filepath.Join(k.state, hex.EncodeToString(sum[:8])))
}

func openStore(path string) *store {
	lock, err := statedir.OpenOwn(path+lockSuffix, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return &store{}
	}
	return &store{path: path, lock: lock}
}

// running reports whether commands run, or ran when their host was killed.
func (s *store) running() bool {
	mark := []byte{0}
	_, _ = s.lock.ReadAt(mark, 0) // a file that was just made is empty
	return mark[0] == marked[0]
}

// busy records that commands run. alone says that no other host runs commands there, killed that a host was killed
// while its commands ran.
func (s *store) busy() (alone, killed bool) {
	if s.lock == nil {
		return true, false
	}
	if alone = statedir.TryLock(s.lock); !alone {
		_ = statedir.ShareLock(s.lock) // without locks other hosts may run commands
		return false, false
	}
	killed = s.running()
	_, _ = s.lock.WriteAt(marked, 0)
	return true, killed
}

// share lets other hosts run commands as well.
func (s *store) share() {
	if s.lock != nil {
		_ = statedir.ShareLock(s.lock)
	}
}

// idle records that no command runs any more, unless commands of another host do.
func (s *store) idle() {
	if s.lock == nil {
		return
	}
	if statedir.TryLock(s.lock) && !s.unclean {
		_, _ = s.lock.WriteAt(unmarked, 0)
	}
	s.unclean = false
	statedir.Unlock(s.lock)
}

func (s *store) close() {
	if s.lock != nil {
		s.lock.Close()
	}
}

// load reads the record.
func (s *store) load() (r record, err error) {
	text, err := os.ReadFile(s.path + recordSuffix)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	r = r.with(func(text string) string {
		name, wrong := statedir.TextName(text)
		err = errors.Join(err, wrong)
		return name
	})
	return r, err
}

// save writes the record.
func (s *store) save(r record) error {
	if s.path == "" {
		s.written = true
		return nil
	}
	text, err := json.Marshal(r.with(statedir.NameText))
	if err == nil {
		err = privatefile.ReplaceQuickly(s.path+recordSuffix, text)
	}
	s.written = err == nil
	return err
}

// Recover removes what commands of killed hosts have left. Call it before settings are read. The roots are searched
// once more before the next command, because commands may have run for a moment after their host was killed.
func (k *Keeper) Recover(roots []string) {
	k.settle.Recover(roots)
	names, _ := filepath.Glob(filepath.Join(k.state, "*"+recordSuffix))
	for _, name := range names {
		if k.state == "" {
			return
		}
		s := openStore(strings.TrimSuffix(name, recordSuffix))
		if s.lock != nil && s.running() {
			k.recover(s, roots)
		}
		s.close()
	}
	notes, _ := k.Since(0)
	for _, note := range notes {
		k.log.Warn(note)
	}
}

func (k *Keeper) recover(s *store, roots []string) {
	r, err := s.load()
	if err != nil {
		k.log.Warn("what commands of a killed host have left behind is not known", "error", err)
		return
	}
	mine := slices.ContainsFunc(roots, func(root string) bool {
		real, err := filepath.EvalSymlinks(root)
		t := []*tree{{dir: r.Dir}}
		return err == nil && (treeOf(t, real) != nil || treeOf([]*tree{{dir: real}}, r.Dir) != nil)
	})
	if mine {
		k.left = append(k.left, r.Guarded...)
	}
	alone := statedir.TryLock(s.lock)
	if !alone && !mine {
		return // the host of those commands lives
	}
	t := &tree{dir: r.Dir, record: r, stored: s, hooks: map[string]*node{}}
	if err := k.report(k.check([]*tree{t})); err != nil {
		k.log.Warn("what a command has left behind could not be taken out", "error", err)
	} else if alone && !mine {
		_, _ = s.lock.WriteAt(unmarked, 0)
	}
}

// maxRemoved bounds a file of removed settings, in bytes. When it is full, the file before it is deleted.
const maxRemoved = 1 << 20

// keep stores settings that were removed, and returns a note of where.
func (k *Keeper) keep(path string, gone []removed) string {
	if k.state == "" {
		return ""
	}
	name := filepath.Join(k.state, "removed.txt")
	if info, err := os.Stat(name); err == nil && info.Size() > maxRemoved {
		_ = os.Rename(name, name+".1")
	}
	f, err := statedir.OpenOwn(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return ""
	}
	defer f.Close()
	for _, r := range gone {
		if _, err := fmt.Fprintf(f, "# %s %q %q\n%s\n", time.Now().UTC().Format(time.RFC3339), path, r.key,
			strings.TrimSpace(r.text)); err != nil {
			return ""
		}
	}
	return fmt.Sprintf(" It is kept in %s.", name)
}
