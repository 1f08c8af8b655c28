package settle

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/toolhost/toolhost/guard/statedir"
)

// A Keeper settles the protected files of the workspaces of a host. Its methods may be called from several goroutines.
type Keeper struct {
	state string
	marks func(dir string) ([]string, uint64)
	log   *slog.Logger

	mu     sync.Mutex
	places map[string]*place
}

// stateName is the directory of all workspaces in the state directory.
const stateName = "settle"

// Open returns a keeper that keeps held files below the state directory of a host; "" keeps them in a temporary
// directory. marks returns the paths below a directory whose last element [IsMark] reports, and [IsGitState] in
// directories of git, and a number that changes when something comes, goes or is replaced at or below them; 0 where
// that is not known. It may be nil if no command begins.
func Open(state string, marks func(dir string) (paths []string, listed uint64), log *slog.Logger) *Keeper {
	k := &Keeper{marks: marks, log: log, places: map[string]*place{}}
	if state != "" {
		k.state = filepath.Join(state, stateName)
	}
	return k
}

// place returns the place of a directory, which has no links.
func (k *Keeper) place(dir string) (*place, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p := k.places[dir]; p != nil {
		return p, nil
	}
	p := &place{dir: dir, marks: k.marks, rec: record{Dir: dir}}
	p.rec.fill()
	err := errors.New("there is no state directory")
	if k.state != "" {
		sum := sha256.Sum256([]byte(dir))
		p.store, err = openStore(filepath.Join(k.state, hex.EncodeToString(sum[:8])))
	}
	if err != nil {
		if err := p.useTemporary(err); err != nil {
			return nil, err
		}
	}
	k.places[dir] = p
	return p, nil
}

// Recover settles all directories in which commands ran when their host was killed. It is called before settings are
// read, with the directories whose settings these are.
func (k *Keeper) Recover(dirs []string) {
	locks, _ := filepath.Glob(filepath.Join(k.state, "*", lockName))
	for _, lock := range locks {
		var r record
		s, err := openStore(filepath.Dir(lock))
		if err == nil && s.running() && s.load(&r) == nil && r.Dir != "" {
			dirs = append(dirs[:len(dirs):len(dirs)], r.Dir)
		}
		if err == nil {
			_ = s.close()
		}
	}
	for _, dir := range dirs {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			continue
		}
		p, err := k.place(real)
		switch {
		case err != nil:
		case p.store.running():
			k.recover(real)
		default:
			p.mu.Lock()
			err = p.read()
			p.mu.Unlock()
		}
		if err != nil {
			k.log.Warn("protected files could not be read", "directory", real, "error", err)
		}
	}
}

// recover settles a directory in which commands ran when their host was killed.
func (k *Keeper) recover(dir string) {
	c, notes, err := k.Begin([]string{dir}, false)
	if err == nil {
		notes = append(notes, c.End()...)
	} else {
		k.log.Warn("protected files could not be settled", "directory", dir, "error", err)
	}
	for _, note := range notes {
		k.log.Warn(note)
	}
}

// Close gives up the directories. No command may run any more.
func (k *Keeper) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var errs []error
	for _, p := range k.places {
		p.mu.Lock()
		if p.users > 0 {
			p.users, p.calls = 1, 1
			p.mu.Unlock()
			p.end(false)
			p.mu.Lock()
		}
		errs = append(errs, p.store.close())
		switch {
		case p.temporary && len(p.rec.Held) == 0:
			errs = append(errs, os.RemoveAll(p.store.dir))
		case p.temporary:
			k.log.Warn("held files are left in a temporary directory", "workspace", p.dir, "directory", p.store.dir)
		}
		p.mu.Unlock()
	}
	k.places = map[string]*place{}
	return errors.Join(errs...)
}

// A File is a held file.
type File struct {
	Dir   string // the workspace
	Path  string // absolute
	Aside string // where the file is kept that does not stand at the path; "" if there is none
	State string // what a command has done to it: "new", "changed" or "removed"
}

// Holding returns those of some directories that have held files. The directories are paths without links.
func (k *Keeper) Holding(dirs []string) (holding []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.places) == 0 {
		return nil
	}
	for _, dir := range dirs {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			if p := k.places[real]; p != nil && p.holds.Load() > 0 {
				holding = append(holding, real)
			}
		}
	}
	return holding
}

// Know records that a person agreed to what stands at a path now.
func (k *Keeper) Know(path string) error {
	k.mu.Lock()
	var in *place
	for _, p := range k.places {
		if strings.HasPrefix(path, p.dir+string(filepath.Separator)) && (in == nil || len(p.dir) > len(in.dir)) {
			in = p
		}
	}
	k.mu.Unlock()
	if in == nil {
		return nil // no command has run: what stands there is known when the first begins
	}
	rel := name(strings.TrimPrefix(path, in.dir+string(filepath.Separator)))
	if classOf(rel) != Held {
		return nil
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	id, _, err := in.at(rel)
	if err != nil || !id.isKnowable() {
		return err
	}
	return in.store.write(&in.memory, []answer{{knownWord, rel, id}})
}

// Dirs returns the directories in which commands have run.
func (k *Keeper) Dirs() (dirs []string) {
	records, _ := filepath.Glob(filepath.Join(k.state, "*", recordName))
	for _, name := range records {
		var r record
		if s, err := openStore(filepath.Dir(name)); err == nil {
			if s.load(&r) == nil && r.Dir != "" {
				dirs = append(dirs, r.Dir)
			}
			_ = s.close()
		}
	}
	slices.Sort(dirs)
	return dirs
}

// Held returns the files of a directory that are held.
func (k *Keeper) Held(dir string) ([]File, error) {
	p, err := k.place(dir)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.store.load(&p.rec); err != nil {
		return nil, err
	}
	return p.heldFiles(), nil
}

// Keep has held files of a directory stay: those at or below some paths, or with none, all. It returns their paths.
func (k *Keeper) Keep(dir string, paths ...string) ([]string, error) {
	return k.answer(dir, paths, (*place).keepFile)
}

// Refuse drops held files: those at or below some paths, or with none, all. It returns their paths.
func (k *Keeper) Refuse(dir string, paths ...string) ([]string, error) {
	return k.answer(dir, paths, (*place).refuseFile)
}

func (k *Keeper) answer(dir string, paths []string, do func(*place, name, bool) error) (done []string, err error) {
	p, err := k.place(dir)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	alone := p.users == 0 && statedir.TryLock(p.store.lock)
	if alone {
		defer statedir.Unlock(p.store.lock)
	}
	alone = alone && !p.store.running()
	if err := errors.Join(p.store.load(&p.rec), p.store.remember(&p.memory)); err != nil {
		return nil, err
	}
	list := p.heldFiles()
	slices.SortStableFunc(list, func(a, b File) int { // a removed file may stand in the way of a new one
		return cmp.Compare(b.State, a.State)
	})
	for _, f := range list {
		if !isNamed(f.Path, paths) {
			continue
		}
		rel := name(strings.TrimPrefix(f.Path, p.dir+string(filepath.Separator)))
		if err := do(p, rel, alone); err != nil {
			return done, errors.Join(err, p.store.save(&p.rec))
		}
		done = append(done, f.Path)
	}
	if alone {
		err = p.store.save(&p.rec)
	}
	p.holds.Store(int32(len(p.rec.Held)))
	return done, err
}

// isNamed reports whether a path is one of paths, or lies below one; any is if there are none.
func isNamed(path string, paths []string) bool {
	for _, p := range paths {
		if path == p || strings.HasPrefix(path, p+string(filepath.Separator)) {
			return true
		}
	}
	return len(paths) == 0
}
