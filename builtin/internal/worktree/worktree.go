// Package worktree makes working trees in which an agent works on a copy of a repository, and imports its commits.
//
// A worktree is below the state directory of the host. For git it is a repository of its own: the objects of the
// user's repository are its alternates, and it has a copy of the refs. So programs in a worktree need no write access
// to the user's repository, and cannot change the user's checkout, index, refs or stashes. The host imports the
// result: it checks the new objects, and moves the one branch that it made, which has the name of the worktree.
//
//	NAME/lock    locked by the host that uses the worktree
//	NAME/meta    what it was made of
//	NAME/begun   what was copied, without a repository
//	NAME/git     the git directory of the host, see [store]
//	NAME/tree    the worktree
//	locks/HASH   held while a worktree is made or ended, one for each repository
//
// Changes are committed before anything is removed. The next host ends the worktrees of a killed host in the same
// way. Worktrees that hold changes or ignored files are kept and listed, and removed after 30 days; their branches
// stay.
package worktree

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/toolhost/toolhost/guard/privatefile"
	"github.com/toolhost/toolhost/guard/statedir"
)

const (
	// keepFor is how long a worktree is kept that was not merged or removed.
	keepFor = 30 * 24 * time.Hour
	// unfinished begins the names of directories that are being made; leftAfter is the age at which they count as
	// abandoned.
	unfinished, leftAfter = "new-", time.Hour
	// lockRetry is how often a repository's lock is tried while another worktree is made there.
	lockRetry = 20 * time.Millisecond
	// lockWait bounds that: a checkout of a large repository takes a minute.
	lockWait = 5 * time.Minute
)

// A Kind is the purpose of a worktree. It begins the name of its branch.
type Kind string

// The kinds of worktrees.
const (
	Agent Kind = "agent"
	Try   Kind = "try"
)

// step is called before each step at which a killed host can leave the work incomplete. Tests replace it.
var step = func(string) {}

// A Room is the directory of the worktrees in a state directory.
type Room struct{ dir string }

// Hidden reports whether rules keep a file or directory of the user's work tree from being read: it is never copied.
// Nil: nothing is.
type Hidden func(path string, dir bool) bool

func (h Hidden) of(path string, dir bool) bool { return h != nil && h(path, dir) }

// Start starts a process of the host's git, which reads no more than the caller may, and writes only what is
// writable: programs of the caller can change the repository at any time. Nil: it is started without restrictions.
type Start func(cmd *exec.Cmd, writable []string) error

// In returns the room below a state directory.
func In(stateDir string) Room { return Room{filepath.Join(stateDir, "worktrees")} }

// Meta describes a worktree.
type Meta struct {
	Name   string // "try-0123abcd"
	Source string // the work tree that it was made of
	Below  string // the caller's directory in it
	Common string // the repository's git directory; "" without a repository
	Index  string // the index of the source
	Base   string // the commit that the branch begins at; "" without a repository
	Begun  string // the tree that stood in the worktree when it was handed over
	Kept   time.Time
	Ready  bool   // something may have worked in it
	Branch string // the branch, once there is something to find there; "" before
	Commit string // its tip, then
	Called string // the name of the branch below toolhost/; "": Name
	Maker  string // the caller that may use it again
	// Owner is the conversation that works in it, for which it is kept even without changes. "": none.
	Owner string
}

// A Spec describes a worktree to make.
type Spec struct {
	Kind   Kind
	Name   string // "": one is made up
	Branch string // its name below toolhost/; "": that of the worktree
	Base   string // the commit that it begins at; "": HEAD
	Dirty  bool   // the changes that are not committed come along, untracked files too, if Base is HEAD
	Hidden Hidden
	Start  Start
	Maker  string // see [Meta]
	Owner  string
}

// A Worktree is one that this process holds. Its methods may be called concurrently.
type Worktree struct {
	Meta
	Left  Report // what was left when it ended
	dir   string
	store store
	lock  *flock.Flock

	mu    sync.Mutex
	users int
}

// BranchName is the name of the branch that the worktree was made with, in the user's repository.
func (m Meta) BranchName() string { return "toolhost/" + cmp.Or(m.Called, m.Name) }

// ref is the ref of the uncommitted changes that were copied from the user's work tree, so that git keeps the objects.
func (m Meta) ref() string { return "refs/toolhost-begun/" + m.Name }

// Tree is the directory of the worktree.
func (w *Worktree) Tree() string { return filepath.Join(w.dir, "tree") }

// Dir is the caller's directory in it.
func (w *Worktree) Dir() string { return filepath.Join(w.Tree(), w.Below) }

// Use counts a user of the worktree: it is not ended until release is called. It fails once the worktree was ended.
func (w *Worktree) Use() (release func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lock == nil {
		return nil, fmt.Errorf("the worktree %s has ended", w.Name)
	}
	w.users++
	return sync.OnceFunc(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.users--
	}), nil
}

// Make makes a worktree of the repository that dir lies in. The error matches [ErrNoRepository] if there is none.
func (r Room) Make(ctx context.Context, dir string, spec Spec) (*Worktree, error) {
	s, err := inspect(ctx, dir, spec.Base, spec.Hidden)
	if err != nil {
		return nil, err
	}
	dirty := spec.Dirty && s.base == s.head
	return r.begin(ctx, s, spec, func(w *Worktree) error { return w.checkOut(ctx, s, dirty, spec.Hidden) })
}

// Copy makes a worktree that is a copy of the files of a directory, without git.
func (r Room) Copy(ctx context.Context, dir string, kind Kind, hidden Hidden) (*Worktree, error) {
	top, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	s := &source{top: top, below: ".", config: map[string]string{}}
	return r.begin(ctx, s, Spec{Kind: kind}, func(w *Worktree) error { return w.copyIn(ctx, top, hidden) })
}

// Try makes a worktree for a trial: with the uncommitted changes, or a copy of the directory if there is no
// repository or no git.
func (r Room) Try(ctx context.Context, dir string, hidden Hidden) (*Worktree, error) {
	w, err := r.Make(ctx, dir, Spec{Kind: Try, Dirty: true, Hidden: hidden})
	if errors.Is(err, ErrNoRepository) || errors.Is(err, exec.ErrNotFound) {
		return r.Copy(ctx, dir, Try, hidden)
	}
	return w, err
}

// begin makes a worktree's directory under the lock of its repository, and removes it if fill fails.
func (r Room) begin(ctx context.Context, s *source, spec Spec, fill func(*Worktree) error) (w *Worktree, err error) {
	id := make([]byte, 4)
	_, _ = rand.Read(id) // never fails
	w = &Worktree{Meta: Meta{
		Name: cmp.Or(spec.Name, string(spec.Kind)+"-"+hex.EncodeToString(id)), Called: spec.Branch, Maker: spec.Maker,
		Owner:  spec.Owner,
		Source: s.top, Below: s.below, Common: s.common, Index: filepath.Join(s.git, "index"), Base: s.base,
	}}
	err = r.locked(ctx, w.Meta, func() (err error) {
		if err := s.free(ctx, w.BranchName()); err != nil { // before anything says that the branch is ours
			return err
		}
		defer func() {
			if err != nil {
				err = errors.Join(err, w.remove(context.WithoutCancel(ctx)))
			}
		}()
		if err := r.claim(w); err != nil {
			return err
		}
		step("store")
		if w.plain() {
			// It has no store.
		} else if w.store, err = s.openStore(store{dir: filepath.Join(w.dir, "git"), start: spec.Start},
			w.BranchName()); err != nil {
			return err
		}
		if err := os.Mkdir(w.Tree(), 0o700); err != nil {
			return err
		}
		if err := fill(w); err != nil {
			return err
		}
		step("ready")
		w.Ready = true
		return w.save()
	})
	if err != nil {
		return nil, fmt.Errorf("a worktree of %s could not be made: %w", s.top, err)
	}
	return w, nil
}

// claim makes and locks the directory of a new worktree, in the real path of the state directory.
func (r Room) claim(w *Worktree) error {
	step("claim")
	if err := privatefile.MakeDir(r.dir); err != nil {
		return err
	}
	room, err := filepath.EvalSymlinks(r.dir)
	if err != nil {
		return err
	}
	w.dir = filepath.Join(room, unfinished+w.Name) // which no other host looks at before it is locked
	if err := os.Mkdir(w.dir, 0o700); err != nil {
		return err
	}
	w.lock = privatefile.NewLock(filepath.Join(w.dir, "lock"))
	if free, err := w.lock.TryLock(); err != nil || !free {
		return errors.Join(err, fmt.Errorf("%s is in use", w.dir))
	}
	step("meta")
	if err := w.save(); err != nil {
		return err
	}
	step("rename")
	dir := filepath.Join(room, w.Name)
	if err := os.Rename(w.dir, dir); err != nil {
		return err
	}
	w.dir = dir
	return nil
}

func (w *Worktree) save() error { return statedir.Save(filepath.Join(w.dir, metaName), w.Meta) }

// metaName is the file of a [Meta], and maxMeta its maximum size in bytes.
const (
	metaName = "meta"
	maxMeta  = 1 << 20
)

// locked runs do while no other worktree of that repository is made or ended.
func (r Room) locked(ctx context.Context, m Meta, do func() error) error {
	dir := filepath.Join(r.dir, "locks")
	if err := privatefile.MakeDir(dir); err != nil {
		return err
	}
	key := m.Common
	if key == "" {
		key = m.Source
	}
	sum := sha256.Sum256([]byte(key))
	lock := privatefile.NewLock(filepath.Join(dir, hex.EncodeToString(sum[:8])))
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
		return fmt.Errorf("another worktree of %s is being made: %w", m.Source, err)
	}
	return errors.Join(do(), lock.Close())
}

// open opens a worktree that no process uses; nil if one uses it for longer than wait, or there is none.
func (r Room) open(ctx context.Context, name string, wait time.Duration) (*Worktree, error) {
	room, err := filepath.EvalSymlinks(r.dir)
	if err != nil {
		return nil, nil
	}
	w := &Worktree{Meta: Meta{Name: name}, dir: filepath.Join(room, name)}
	w.lock = privatefile.NewLock(filepath.Join(w.dir, "lock"))
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	free, err := w.lock.TryLock()
	if err == nil && !free && wait > 0 {
		free, _ = w.lock.TryLockContext(ctx, lockRetry) // its error is that of ctx
	}
	if errors.Is(err, fs.ErrNotExist) || err == nil && !free {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	err = statedir.Load(filepath.Join(w.dir, metaName), maxMeta, &w.Meta)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(fmt.Errorf("the worktree %s cannot be read: %w", w.dir, err), w.lock.Close())
	}
	w.Name, w.store = name, store{dir: filepath.Join(w.dir, "git")}
	if w.Common != "" {
		w.store.objects = filepath.Join(w.Common, "objects")
	}
	return w, nil
}

// names are those of all worktrees.
func (r Room) names() (names []string) {
	entries, _ := os.ReadDir(r.dir) // an absent one has none
	for _, e := range entries {
		if kind, _, ok := strings.Cut(e.Name(), "-"); ok && e.IsDir() &&
			(kind == string(Agent) || kind == string(Try)) {
			names = append(names, e.Name())
		}
	}
	return names
}

// List returns the worktrees that were kept, for people to look at.
func (r Room) List() (kept []Meta) {
	for _, name := range r.names() {
		var m Meta
		if statedir.Load(filepath.Join(r.dir, name, metaName), maxMeta, &m) == nil && !m.Kept.IsZero() {
			kept = append(kept, m)
		}
	}
	return kept
}

// Tree is the directory of a worktree of the list.
func (r Room) Tree(m Meta) string { return filepath.Join(r.dir, m.Name, "tree") }

// Sweep ends the worktrees of hosts that were killed, and removes those that were kept for 30 days.
func (r Room) Sweep(ctx context.Context, now time.Time) error {
	var errs []error
	begun, _ := filepath.Glob(filepath.Join(r.dir, unfinished+"*")) // the pattern is well formed
	for _, dir := range begun {
		if info, err := os.Lstat(dir); err == nil && now.Sub(info.ModTime()) > leftAfter {
			errs = append(errs, os.RemoveAll(dir))
		}
	}
	for _, name := range r.names() {
		w, err := r.open(ctx, name, 0)
		if w == nil {
			errs = append(errs, err)
			continue
		}
		switch {
		case w.Kept.IsZero():
			_, err = w.End(ctx)
		case now.Sub(w.Kept) > keepFor:
			if _, err = w.End(ctx); err == nil { // it may have been used since
				err = w.Remove(ctx)
			}
		default:
			err = w.lock.Close()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
