// Package baseline removes what commands leave for programs outside of the sandbox to execute or obey: settings
// of git that execute programs, hooks, files that lead git to other settings, and new settings files of the
// host.
//
// A [Keeper] records what is in the writable directories when the first command begins, and removes what is added while
// commands run: when it appears, after each command, and if a host was killed, at the next start. Changes that are made
// while no command runs are the user's, and stay.
//
// Its Go API is not stable.
package baseline

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/sandbox"
	"github.com/toolhost/toolhost/guard/settle"
)

// A Keeper keeps the baselines of the directories that commands of a host may write. Its methods may be called from
// several goroutines.
type Keeper struct {
	state  string // where baselines outlive the process; "": they do not
	log    *slog.Logger
	settle *settle.Keeper

	mu sync.Mutex
	// patient says that a configuration that has just changed is left to a later check; postponed says that there was
	// one.
	patient, postponed bool

	trees map[string]*tree
	watch *watcher          // nil where the system has none
	left  []sandbox.Guarded // files that commands of a killed host may still make

	notesMu sync.Mutex
	notes   []string // of what was taken out
	dropped int      // how many of the notes are no longer kept
}

// A tree is a writable directory.
type tree struct {
	dir    string
	users  int // commands that run
	record record
	stored *store
	top    *node
	hooks  map[string]*node // directories of hooks
	found  found            // by the last scan
	marks  []string         // paths whose last element may begin a protected name, by the last scan
	listed uint64           // how often directories at and below marks have been listed

	remotes map[string]bool // addresses of remotes that were named as changed
	queue   []*node
	forced  bool // commands have run: files that they made unreadable are made readable again
}

// maxNotes bounds how many notes are kept for the commands that run.
const maxNotes = 200

// Open returns a keeper that keeps baselines in a directory below the state directory; "" keeps them in memory.
func Open(state string, log *slog.Logger) *Keeper {
	k := &Keeper{log: log, trees: map[string]*tree{}}
	k.settle = settle.Open(state, k.marks, log)
	if state != "" {
		k.state = filepath.Join(state, "baseline")
		if err := os.MkdirAll(k.state, 0o700); err != nil {
			log.Warn("what commands may not leave behind is known until this process ends only", "error", err)
			k.state = ""
		}
	}
	return k
}

// Settle returns the keeper of protected files.
func (k *Keeper) Settle() *settle.Keeper { return k.settle }

// marks returns the paths below a directory whose last element may begin a protected name, and a number that changes
// when something comes, goes or is replaced at or below them; 0 where that is not known.
func (k *Keeper) marks(dir string) (paths []string, listed uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.watch == nil {
		k.watch = newWatcher(k.look)
	}
	k.watch.drain()
	t := k.tree(dir)
	if t.scan(k.watch); t.found.watched && t.found.whole {
		listed = t.listed
	}
	return slices.Clone(t.marks), listed
}

// Begin records the content of some directories before a command runs that may write them. While another command runs
// there, also of another host, the record from before that command holds. The guarded paths are those of the sandbox,
// if it is known by now; see [Keeper.Guard]. Every Begin needs an End.
func (k *Keeper) Begin(dirs []string, guarded []sandbox.Guarded) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.watch == nil {
		k.watch = newWatcher(k.look)
	}
	for _, dir := range dirs {
		t := k.tree(dir)
		if t.users++; t.users == 1 {
			k.renew(t, guarded)
		}
	}
	k.left = nil
	k.guard(guarded)
	k.watch.attend(true)
}

// tree returns the tree of a directory.
func (k *Keeper) tree(dir string) *tree {
	t := k.trees[dir]
	if t == nil {
		t = &tree{dir: dir, stored: k.storeOf(dir), hooks: map[string]*node{}, listed: 1}
		k.trees[dir] = t
	}
	return t
}

// End is called when a command that Begin was called for has ended, after Check.
func (k *Keeper) End(dirs []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, dir := range dirs {
		t := k.trees[dir]
		if t == nil {
			continue
		}
		if t.users--; t.users == 0 {
			t.stored.idle()
		}
	}
	k.watch.attend(len(k.busy()) > 0)
}

// busy returns the trees in which commands run.
func (k *Keeper) busy() (list []*tree) {
	for _, t := range k.trees {
		if t.users > 0 {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b *tree) int { return strings.Compare(a.dir, b.dir) })
	return list
}

// renew makes the baseline of a tree as it is now, unless commands of another host run there.
func (k *Keeper) renew(t *tree, guarded []sandbox.Guarded) {
	alone, killed := t.stored.busy()
	if !alone || killed {
		if r, err := t.stored.load(); err == nil {
			t.record = r
		} else {
			killed = false
		}
	}
	if !alone && t.record.Files != nil {
		return
	}
	if killed {
		k.report(k.check([]*tree{t}))
	}
	t.forced = false
	found, _ := items([]*tree{t}, k.watch)
	next := record{Dir: t.dir, Files: make(map[string]file, len(found)), Guarded: guardedIn(t.dir, guarded)}
	changed := len(found) != len(t.record.Files) || !slices.Equal(next.Guarded, t.record.Guarded)
	for _, it := range found {
		was, known := t.record.Files[it.path]
		if !known || was.Stamp != it.stamp || was.To != it.to || was.Racy {
			was, changed = it.note(), true
		}
		next.Files[it.path] = was
	}
	t.record, t.forced = next, true
	if changed || !t.stored.written {
		k.save(t)
	}
	t.stored.share()
}

// save stores the baseline of a tree.
func (k *Keeper) save(t *tree) {
	if err := t.stored.save(t.record); err != nil {
		k.log.Warn("what commands leave behind cannot be taken out if this host is killed", "error", err)
	}
}

// Guard adds protected paths that no mount protects, for the commands that run.
func (k *Keeper) Guard(list []sandbox.Guarded) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.guard(list)
}

func (k *Keeper) guard(list []sandbox.Guarded) {
	for _, t := range k.busy() {
		next := slices.Clone(t.record.Guarded)
		for _, g := range guardedIn(t.dir, list) {
			if !slices.ContainsFunc(next, func(n sandbox.Guarded) bool { return n.Path == g.Path }) {
				next = append(next, g)
			}
		}
		if len(next) > len(t.record.Guarded) {
			t.record.Guarded = next
			k.save(t)
		}
	}
}

// guardedIn returns the guarded paths that lie in a writable directory.
func guardedIn(dir string, list []sandbox.Guarded) []sandbox.Guarded {
	return slices.DeleteFunc(slices.Clone(list), func(g sandbox.Guarded) bool { return filepath.Clean(g.Root) != dir })
}

// Withheld reports whether a settings file did not exist before the commands that run, or before those of a host that
// was killed, so that a command may have created it.
func (k *Keeper) Withheld(path string) bool {
	path = settle.RealAbove(path)
	k.mu.Lock()
	defer k.mu.Unlock()
	list := slices.Clone(k.left)
	for _, t := range k.busy() {
		list = append(list, t.record.Guarded...)
	}
	return slices.ContainsFunc(list, func(g sandbox.Guarded) bool {
		return g.New != "" && (path == g.Path || strings.HasPrefix(path, g.Path+string(filepath.Separator)))
	})
}

// Check removes what commands have added to the directories in which they run. [Keeper.Since] returns notes of the
// removals. An error means that something added is still in effect.
func (k *Keeper) Check() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.report(k.check(k.busy()))
}

// CutOff replaces files in some directories by copies if a program has them open for writing and git obeys or runs
// them: through the open file the program could change them when it no longer counts as a command. Check is called
// after CutOff.
func (k *Keeper) CutOff(dirs []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	found, _ := items(slices.DeleteFunc(k.busy(), func(t *tree) bool { return !slices.Contains(dirs, t.dir) }), k.watch)
	for _, it := range found {
		err := it.tree.within(it.path, func(root *os.Root, rel string) error {
			if !settle.StaysOpen(root, rel, time.Time{}) {
				return nil
			}
			text, err := readText(it.path, it.stamp)
			if err != nil {
				return err
			}
			return put(root, rel, text, it.stamp)
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errOdd) { // Check moves what is odd away
			k.log.Warn("a program may change a file of git later", "file", it.path, "error", err)
		}
	}
}

// check removes what is not in the baselines of some trees.
func (k *Keeper) check(trees []*tree) (notes []string, err error) {
	var errs []error
	for _, t := range trees {
		t.forced = true
		moved, err := sandbox.Quarantine(t.record.Guarded)
		for _, m := range moved {
			notes = append(notes, fmt.Sprintf("%s is protected: what the command put there was moved to %s.", m.Path, m.Moved))
		}
		errs = append(errs, err)
	}
	found, _ := items(trees, k.watch)
	if k.watch != nil {
		k.watch.heard = false
	}
	for _, it := range found {
		did, err := k.judge(it, trees)
		notes = append(notes, did...)
		errs = append(errs, err)
		if err != nil {
			it.tree.stored.unclean = true
		}
	}
	return notes, errors.Join(errs...)
}

// report adds notes of removals.
func (k *Keeper) report(notes []string, err error) error {
	k.notesMu.Lock()
	defer k.notesMu.Unlock()
	k.notes = append(k.notes, notes...)
	if over := len(k.notes) - maxNotes; over > 0 {
		k.notes, k.dropped = slices.Delete(k.notes, 0, over), k.dropped+over
	}
	return err
}

// Since returns the notes of removals after the first from notes, and the present number of notes.
func (k *Keeper) Since(from int) (notes []string, count int) {
	k.notesMu.Lock()
	defer k.notesMu.Unlock()
	return append([]string(nil), k.notes[min(max(from-k.dropped, 0), len(k.notes)):]...), k.dropped + len(k.notes)
}

// look checks while commands run, always or if an event arrived, and returns how long it took.
func (k *Keeper) look(always bool) time.Duration {
	began := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	w := k.watch
	if w == nil {
		return 0 // closed
	}
	if w.drain(); always || w.heard {
		k.patient, k.postponed = !always, false
		if err := k.report(k.check(k.busy())); err != nil {
			k.log.Debug("a command leaves something behind", "error", err)
		}
		if k.patient = false; k.postponed {
			w.heard = true
			time.AfterFunc(configQuiet, func() { k.look(false) })
		}
	}
	return time.Since(began)
}

// configQuiet is how long a configuration must be unchanged before it is rewritten while commands run: they often set
// several values. The examination every [lookAgain] does not wait for it.
const configQuiet = 100 * time.Millisecond

// Hooks creates the hooks directory of each repository that has none in some of the directories that Begin was called
// for, and returns those that a sandbox must make read-only: git runs the programs in them.
func (k *Keeper) Hooks(dirs []string) (hooks []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	trees := slices.DeleteFunc(k.busy(), func(t *tree) bool { return !slices.Contains(dirs, t.dir) })
	_, repos := items(trees, k.watch)
	for _, repo := range repos {
		if t := treeOf(trees, repo); t != nil {
			if path, ok := t.makeHooks(repo); ok {
				hooks = append(hooks, path)
			}
		}
	}
	return hooks
}

// makeHooks returns the hooks directory of a repository called .git, or of a submodule, and creates it if it does not
// exist.
func (t *tree) makeHooks(repo string) (string, bool) {
	if _, err := os.Lstat(filepath.Join(repo, commonName)); err == nil { // git takes those of another directory
		return "", false
	}
	if rel, err := filepath.Rel(t.dir, repo); err != nil ||
		!slices.ContainsFunc(strings.Split(rel, string(filepath.Separator)), isGitName) {
		return "", false
	}
	path := filepath.Join(repo, hooksName)
	st, err := statOf(path)
	if err != nil {
		if _, err := os.Lstat(filepath.Join(repo, "HEAD")); err != nil {
			return "", false
		}
		err = t.within(path, func(root *os.Root, rel string) error { return root.Mkdir(rel, 0o755) })
		return path, err == nil // where this process may not create it, commands may not either
	}
	return path, st.Mode.IsDir()
}

func isGitName(name string) bool { return pathname.Folded.Of(name) == gitName }

// Close ends the watch. No command may run any more.
func (k *Keeper) Close() error {
	settled := k.settle.Close()
	k.mu.Lock()
	busy := k.busy()
	notes, err := k.check(busy) // their end may not have been reported
	for _, note := range notes {
		k.log.Warn(note)
	}
	for _, t := range busy {
		t.stored.idle()
	}
	w := k.watch
	k.watch = nil
	for _, t := range k.trees {
		t.stored.close()
	}
	k.trees = map[string]*tree{}
	k.mu.Unlock() // the watch may be about to check
	return errors.Join(settled, err, w.close())
}
