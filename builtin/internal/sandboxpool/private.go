package sandboxpool

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/privatedir"
	"github.com/toolhost/toolhost/guard/sandbox"
)

// private prepares the private directories of the caller for a sandbox that is about to start. Without a usable state
// directory there are none, and commands see the directories of the host read-only.
func (cs *Pool) private(c *Sandbox) []sandbox.Private {
	c.logIn(cs) // its socket lies in one
	var list []sandbox.Private
	for _, place := range c.policy.Commands().Private() {
		_, _, err := place.Sync(c.view())
		if err != nil { // it may have been removed: the next try recreates it
			_, _, err = place.Sync(c.view())
		}
		if err != nil {
			cs.log.Warn("commands get no private directories, and cannot write in /tmp", "directory", place.Name(),
				"error", err)
			c.shared = true
			return nil
		}
		list = append(list, mounted(place))
	}
	return list
}

// show lets commands see new entries of the host directories that private ones replace.
func (c *Sandbox) show() error {
	if c.shared {
		return nil
	}
	for _, place := range c.policy.Commands().Private() {
		fresh, changed, err := place.Sync(c.view())
		if err == nil && changed {
			err = c.box.Show(mounted(place), fresh...)
			c.refresh()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func mounted(p *privatedir.Place) sandbox.Private {
	return sandbox.Private{Name: p.Name(), Dir: p.Dir(), Shown: p.Shown()}
}

// view returns what commands see of the host in private directories.
func (c *Sandbox) view() privatedir.View {
	needed := slices.Concat(c.paths.Writable, c.paths.Shown, c.policy.Roots(), filepath.SplitList(os.Getenv("PATH")))
	if home, err := os.UserHomeDir(); err == nil {
		needed = append(needed, home)
	}
	if c.ssh != nil {
		needed = append(needed, c.ssh.Path())
	}
	return privatedir.View{Needed: needed, Guarded: slices.Concat(c.paths.Denied, c.paths.Masked),
		Hidden: c.policy.Commands().Hidden}
}

// clear empties the private directories of a caller after its sandbox has ended, unless a new one uses them.
func (cs *Pool) clear(c *Sandbox) {
	cs.mu.Lock()
	same := func(p *guard.Policy) bool { return p.Commands().Scratch() == c.policy.Commands().Scratch() }
	used := slices.ContainsFunc(cs.all(), func(other *Sandbox) bool { return other != c && same(other.policy) })
	for s := range cs.starts {
		used = used || same(s.policy)
	}
	if used {
		cs.mu.Unlock()
		return
	}
	var removes []func() error
	for _, place := range c.policy.Commands().Private() {
		if remove, err := place.Clear(); err == nil {
			removes = append(removes, remove)
		}
	}
	cs.mu.Unlock()
	for _, remove := range removes {
		if err := remove(); err != nil {
			cs.log.Warn("cannot remove the private files of commands", "error", err)
		}
	}
}
