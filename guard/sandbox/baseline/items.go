package baseline

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/chmodretry"
)

// A kind is the use that git makes of a file.
type kind int

const (
	settings kind = iota // git obeys the settings in it
	common               // git takes settings and hooks from the directory that the file names
	lead                 // git takes the directory that the file or link names for the repository
	hook                 // git runs the file
)

// leadPrefix begins the text of a file named .git.
const leadPrefix = "gitdir: "

// An item is a file that makes git run programs, or can.
type item struct {
	tree  *tree
	path  string
	kind  kind
	stamp stamp
	text  []byte // of a lead
	err   error  // why a lead could not be read
	to    string // where a lead leads, without links; "" if that cannot be said
}

// items lists what there is in the directories of some trees, and the repositories.
func items(trees []*tree, watch *watcher) (all []item, repos []string) {
	watch.drain()
	c := collector{trees: trees, seen: map[string]bool{}}
	for _, t := range trees {
		found, leads := t.scan(watch)
		for _, dir := range leads {
			c.lead(t, dir)
		}
		for _, dir := range found {
			c.queue(dir)
		}
	}
	for i := 0; i < len(c.repos); i++ {
		c.repo(c.repos[i], watch)
	}
	return c.items, c.repos
}

// A collector collects items.
type collector struct {
	trees []*tree
	items []item
	repos []string
	seen  map[string]bool
}

// queue adds a directory to those that are examined as repositories.
func (c *collector) queue(dir string) {
	if !c.seen[dir] {
		c.seen[dir] = true
		c.repos = append(c.repos, dir)
	}
}

// add adds a file if it exists.
func (c *collector) add(path string, k kind) bool {
	t := treeOf(c.trees, path)
	if t == nil {
		return false
	}
	st, err := statOf(path)
	if err != nil {
		return false
	}
	c.items = append(c.items, item{tree: t, path: path, kind: k, stamp: st})
	return true
}

// lead adds the file or link named .git of a directory, and its target.
func (c *collector) lead(t *tree, dir string) {
	path := filepath.Join(dir, gitName)
	st, err := statOf(path)
	if err != nil || st.Mode.IsDir() {
		return
	}
	it := item{tree: t, path: path, kind: lead, stamp: st}
	if it.text, it.err = readText(path, st); it.err == nil {
		it.to = leadsTo(path, it.text, st.Mode.IsRegular())
	}
	c.items = append(c.items, it)
	if it.to != "" && treeOf(c.trees, it.to) != nil {
		c.queue(it.to)
	}
}

// leadsTo returns where a link named .git, or a file with a text, leads, without links.
func leadsTo(path string, text []byte, isFile bool) string {
	target := path
	if isFile {
		rest, ok := strings.CutPrefix(string(text), leadPrefix)
		if !ok || strings.ContainsRune(rest, 0) { // where git takes the path to end
			return ""
		}
		target = strings.TrimRight(rest, "\r\n")
		if !filepath.IsAbs(target) {
			target = filepath.Dir(path) + string(filepath.Separator) + target // not cleaned: links come first
		}
	}
	real, ok := resolve(target)
	if st, err := statOf(real); !ok || err == nil && !st.Mode.IsDir() {
		return ""
	}
	return real
}

// resolve follows the links of a path whose last elements need not exist.
func resolve(path string) (string, bool) {
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		return real, true
	}
	if _, err := os.Lstat(path); err == nil {
		return "", false // a link that leads nowhere, or in a circle
	}
	dir, name := filepath.Split(strings.TrimRight(path, string(filepath.Separator)))
	if name == "" || name == "." || name == ".." || dir == path {
		return "", false
	}
	dir, ok := resolve(dir)
	return filepath.Join(dir, name), ok
}

// repo adds what makes git run programs in a directory that it may take for a repository.
func (c *collector) repo(dir string, watch *watcher) {
	if _, err := c.statOpen(dir); err != nil {
		return
	}
	c.add(filepath.Join(dir, configName), settings)
	c.add(filepath.Join(dir, configName+".worktree"), settings)
	if c.add(filepath.Join(dir, commonName), common) && filepath.Base(filepath.Dir(dir)) == treesName {
		c.queue(filepath.Dir(filepath.Dir(dir)))
	}
	hooks := filepath.Join(dir, hooksName)
	st, err := c.statOpen(hooks)
	switch {
	case err != nil:
		return
	case st.Mode&fs.ModeSymlink != 0:
		c.add(hooks, hook)
		return
	case !st.Mode.IsDir():
		return
	}
	t := treeOf(c.trees, hooks)
	if t == nil {
		return
	}
	for _, path := range t.hookFiles(hooks, st, watch) {
		if st, err := statOf(path); err == nil && (st.Mode&fs.ModeSymlink != 0 || st.Mode.IsRegular() && st.Mode&0o111 != 0) {
			c.add(path, hook)
		}
	}
}

// hookFiles lists the programs that git may run in a hooks directory. It reads the directory only if it is not
// watched or has changed.
func (t *tree) hookFiles(dir string, st stamp, watch *watcher) []string {
	n := t.hooks[dir]
	if n == nil || n.stamp.Ino != st.Ino {
		watch.drop(n)
		n = &node{path: dir, place: hooksDir, repo: true, dirty: true}
		t.hooks[dir] = n
	}
	if n.watched.Watch() != 0 && !n.dirty && n.lost == watch.lostEvents() {
		return n.files
	}
	watch.add(n)
	n.stamp, n.dirty, n.lost, n.files = st, false, watch.lostEvents(), nil
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		// What was moved away has no name of a hook any more; each check would move it once more.
		if !strings.HasSuffix(e.Name(), ".sample") && !chmodretry.Quarantined(e.Name()) && !e.IsDir() {
			n.files = append(n.files, filepath.Join(dir, e.Name()))
		}
	}
	return n.files
}

// statOpen is statOf for a directory, and gives its owner the right to read it.
func (c *collector) statOpen(dir string) (stamp, error) {
	t := treeOf(c.trees, dir)
	st, err := statOf(dir)
	switch {
	case t == nil:
	case errors.Is(err, fs.ErrPermission):
		if st, err = t.openAbove(dir); err == nil {
			st = t.open(dir, st)
		}
	case err == nil:
		st = t.open(dir, st)
	}
	return st, err
}

// treeOf returns the tree that a path lies in, or nil.
func treeOf(trees []*tree, path string) *tree {
	for _, t := range trees {
		if path == t.dir ||
			strings.HasPrefix(path, strings.TrimSuffix(t.dir, string(filepath.Separator))+string(filepath.Separator)) {
			return t
		}
	}
	return nil
}
