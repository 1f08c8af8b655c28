package baseline

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/toolhost/toolhost/guard/changes"
	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/settle"
)

// A stamp tells whether a file or directory may have changed.
type stamp struct {
	Dev, Ino          uint64
	Mode              fs.FileMode
	Size              int64
	User, Group       uint32
	Changed, Modified int64 // nanoseconds; commands cannot set the first
}

// racyWindow is how recent a change may be so that another one can have the same time.
const racyWindow = 20 * time.Millisecond

// racy reports whether a file with this stamp could change and have the same stamp.
func (s stamp) racy() bool { return time.Now().UnixNano()-s.Changed < int64(racyWindow) }

// maxDirs is how many directories of a writable directory are examined, those nearest to it first. Each costs about
// a microsecond, before and after a command.
const maxDirs = 50_000

// mayLook are the rights of an owner who may list and enter a directory.
const mayLook fs.FileMode = 0o500

// A place is the meaning of a directory for git, by the names above it.
type place int

const (
	ordinary   place = iota
	dotGit           // .git
	allModules       // .git/modules
	module           // in .git/modules
	allTrees         // .git/worktrees
	worktree         // in .git/worktrees
	hooksDir         // a directory of hooks
)

// A node is a directory as it was when it was listed.
type node struct {
	path    string
	place   place
	stamp   stamp
	racy    bool
	dirty   bool     // an event told of a change, or that its path is another directory
	lost    uint64   // how often events had been lost when it was listed
	marks   []string // entries whose name may begin a protected one, and states of git's operations
	kids    []*node  // the directories in it that are examined
	files   []string // of hooks, in a directory of them
	marked  bool     // it is at or below a protected name
	lead    bool     // a file or link named .git is in it
	repo    bool     // git may take it for a repository
	watched changes.Dir
}

// found is the result of a scan.
type found struct {
	repos, leads []string
	watched      bool   // all directories are watched
	whole        bool   // every directory was examined: there are at most maxDirs
	at           uint64 // of [watcher.now]
}

// Names of gitrepository-layout(5).
const (
	gitName    = ".git"
	configName = "config"
	commonName = "commondir"
	hooksName  = "hooks"
	treesName  = "worktrees"
)

// scan lists the directories that git may take for a repository, and the directories with a file or link named .git.
// A directory is examined only if it is not watched or has changed, and listed only if it has changed.
func (t *tree) scan(watch *watcher) (repos, leads []string) {
	if st, err := statOf(t.dir); t.top == nil || err == nil &&
		(st.Ino != t.top.stamp.Ino || st.Dev != t.top.stamp.Dev) {
		watch.drop(t.top)
		t.top, t.found = &node{path: t.dir, place: topPlace(t.dir)}, found{}
		t.listed++
	}
	if t.found.watched && t.found.at == watch.now() {
		return t.found.repos, t.found.leads
	}
	t.found = found{watched: true, whole: true, at: watch.now()}
	before := t.marks
	t.marks = nil
	t.queue = append(t.queue[:0], t.top)
	for i := 0; i < len(t.queue); i++ {
		n := t.queue[i]
		if n.watched.Watch() == 0 || n.dirty || n.lost != watch.lostEvents() {
			exists := t.look(n, watch)
			t.found.watched = t.found.watched && n.watched.Watch() != 0
			if !exists {
				continue
			}
		}
		t.marks = append(t.marks, n.marks...)
		if n.lead {
			t.found.leads = append(t.found.leads, n.path)
		}
		if n.repo {
			t.found.repos = append(t.found.repos, n.path)
		}
		if room := maxDirs - len(t.queue); room > 0 {
			t.queue = append(t.queue, n.kids[:min(room, len(n.kids))]...)
			t.found.whole = t.found.whole && room >= len(n.kids)
		} else {
			t.found.whole = t.found.whole && len(n.kids) == 0
		}
	}
	if !slices.Equal(before, t.marks) {
		t.listed++
	}
	return t.found.repos, t.found.leads
}

// topPlace returns the place of a directory that commands may write: that of a repository may be one.
func topPlace(dir string) place {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			return ordinary
		}
	}
	return dotGit
}

// look examines a directory, and reports whether it exists.
func (t *tree) look(n *node, watch *watcher) bool {
	if n.marked {
		t.listed++
	}
	lost := watch.lostEvents()
	if n.watched.Watch() == 0 || n.dirty || n.lost != lost {
		watch.add(n) // before it is listed, so that later changes are reported
	}
	st, err := statOf(n.path)
	if errors.Is(err, fs.ErrPermission) {
		st, err = t.openAbove(n.path)
	}
	if err != nil || !st.Mode.IsDir() {
		watch.drop(n)
		n.stamp, n.kids = stamp{}, nil
		return false
	}
	if n.stamp.Ino != 0 && n.stamp.Ino != st.Ino { // it is another directory now
		watch.add(n)
		watch.drop(n.kids...)
		n.kids = nil
	}
	if st != n.stamp || n.racy || n.dirty || n.lost != lost {
		st = t.open(n.path, st)
		n.stamp, n.racy, n.dirty, n.lost = st, st.racy(), false, lost
		gone := n.list()
		if slices.ContainsFunc(gone, func(kid *node) bool { return kid.marked }) { // a file may have the name now
			t.listed++
		}
		watch.drop(gone...)
	}
	return true
}

// list reads a directory. It returns what was known of the directories in it that are gone.
func (n *node) list() (gone []*node) {
	entries, _ := os.ReadDir(n.path) // what cannot be listed cannot be entered by a command either
	known := make(map[string]*node, len(n.kids))
	for _, kid := range n.kids {
		known[filepath.Base(kid.path)] = kid
	}
	has := map[string]bool{}
	n.kids, n.marks, n.lead = nil, nil, false
	for _, e := range entries {
		name := pathname.Folded.Of(e.Name())
		switch name {
		case "head", "objects", "refs", commonName, configName, configName + ".worktree", hooksName:
			has[name] = true
		case gitName:
			n.lead = n.lead || !e.IsDir()
		}
	}
	n.repo = n.isRepo(has)
	for _, e := range entries {
		if n.place == ordinary && settle.IsMark(e.Name()) || n.repo && settle.IsGitState(e.Name()) {
			n.marks = append(n.marks, filepath.Join(n.path, e.Name()))
		}
		if !e.IsDir() {
			continue
		}
		at, ok := n.kidPlace(pathname.Folded.Of(e.Name()))
		if !ok {
			continue
		}
		kid := known[e.Name()]
		if kid == nil {
			kid = &node{path: filepath.Join(n.path, e.Name()), place: at, marked: n.marked || settle.IsMark(e.Name())}
		}
		delete(known, e.Name())
		n.kids = append(n.kids, kid)
	}
	return slices.Collect(maps.Values(known))
}

// openAbove is [tree.open] for the directories above a path, and returns its stamp.
func (t *tree) openAbove(path string) (stamp, error) {
	if !t.forced {
		return stamp{}, fs.ErrPermission
	}
	for i := len(t.dir) + 1; i < len(path); i++ {
		if path[i] == filepath.Separator {
			if st, err := statOf(path[:i]); err == nil {
				t.open(path[:i], st)
			}
		}
	}
	return statOf(path)
}

// open gives the owner of a directory the right to read it if a command has removed that right: another program could
// restore it, and find a repository there.
func (t *tree) open(dir string, st stamp) stamp {
	if !t.forced || !st.Mode.IsDir() || st.Mode&mayLook == mayLook || canLook(dir) {
		return st
	}
	err := t.inRoot(dir, func(root *os.Root, rel string) error { return root.Chmod(rel, st.Mode.Perm()|mayLook) })
	if now, again := statOf(dir); err == nil && again == nil {
		return now
	}
	return st
}

// canLook reports whether this process may list and enter a directory, as root may whatever its mode.
func canLook(dir string) bool {
	f, err := os.Open(dir + string(filepath.Separator) + ".")
	if err != nil {
		return false
	}
	f.Close()
	return true
}

// isRepo reports whether git may take a directory with these entries, folded, for a repository.
func (n *node) isRepo(has map[string]bool) bool {
	switch n.place {
	case dotGit, worktree:
		return true
	case module:
		return has["head"] || has[configName] || has[configName+".worktree"] || has[commonName] || has[hooksName]
	case ordinary:
		return has["head"] && (has["objects"] && has["refs"] || has[commonName])
	default:
		return false
	}
}

// kidPlace returns the place of a directory of this name, folded, in n, and whether it is examined.
// Directories that git names after commits and branches are not: there may be very many.
func (n *node) kidPlace(name string) (place, bool) {
	switch n.place {
	case dotGit, module:
		switch {
		case name == "modules":
			return allModules, true
		case name == treesName:
			return allTrees, true
		case n.place == dotGit, n.repo && (name == "objects" || name == "refs" || name == "logs" || name == hooksName):
			return 0, false
		}
		return module, true
	case allModules:
		return module, true
	case allTrees:
		return worktree, true
	case worktree:
		return allModules, name == "modules"
	default:
		if name == gitName {
			return dotGit, true
		}
		return ordinary, true
	}
}
