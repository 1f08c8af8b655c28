package guard

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"toolhost/guard/internal/gitrepo"
	"toolhost/guard/internal/pathname"
)

// SandboxPaths are what the rules say of files, as lists of real paths that a
// sandbox can hold. Patterns hold for what exists; [Policy.Hidden] tells of a
// file that appears later.
type SandboxPaths struct {
	// Writable are the directories of the boundary, and what sandbox.filesystem.allowWrite names.
	Writable []string
	// ReadOnly are files and directories in them that stay as they are: what
	// Edit rules and sandbox.filesystem.denyWrite deny, protected paths, settings files. Settings files are listed
	// even if absent.
	ReadOnly []string
	// Denied are the files and directories that Read rules and
	// sandbox.filesystem.denyRead deny. Those that are
	// named without a wildcard are listed even if absent.
	Denied []string
	// Masked are the host's state, the home directory's secrets, and what denyRead
	// denies but for a part.
	Masked []string
	// Shown are what this caller, or any command, may read in Masked.
	Shown []string
}

// SandboxPaths walks the boundary and returns what a sandbox must hold. It takes
// about a millisecond for a thousand files.
func (p *Policy) SandboxPaths() SandboxPaths {
	k := p.core
	c := SandboxPaths{Writable: k.outermost(), Shown: slices.Clone(p.caller.Own)}
	c.Denied = k.others()
	bounds := c.Writable
	k.files.widen(&c)
	for _, dir := range bounds {
		if dir == k.scratch {
			continue // large, and all of it the caller's own
		}
		frozen := k.frozen(dir)
		if c.walk(k, dir, frozen); frozen {
			c.ReadOnly = append(c.ReadOnly, dir)
		}
		c.ReadOnly = append(c.ReadOnly, filepath.Join(dir, ".claude", "settings.json"), filepath.Join(dir, ".claude", "settings.local.json"), filepath.Join(dir, ".toolhost"))
	}
	c.Denied = append(c.Denied, named(k.deny.read)...)
	c.ReadOnly = append(c.ReadOnly, named(k.deny.edit)...)
	for _, f := range append(slices.Clone(k.ruleFiles.Names), k.hooked.Names...) {
		c.ReadOnly = append(c.ReadOnly, pathname.Native(f))
	}
	for _, m := range append(slices.Clone(k.state.Names), k.secrets.Names...) {
		if name := pathname.Native(m); exists(name) && (k.state.Hold(m) || k.allow.read.match(m, true) == nil) {
			c.Masked = append(c.Masked, name)
		}
	}
	for name := range k.allow.read.byPath {
		if k.secrets.Hold(name) && !k.state.Hold(name) && exists(pathname.Native(name)) {
			c.Shown = append(c.Shown, pathname.Native(name))
		}
	}
	k.files.withhold(&c, k.scratch)
	for _, list := range []*[]string{&c.Writable, &c.ReadOnly, &c.Denied, &c.Masked, &c.Shown} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return c
}

// frozen reports whether every edit in a directory of the boundary is denied, also of what
// is not there yet.
func (k *core) frozen(dir string) bool {
	edit := k.deny.edit
	return k.deny.every != nil || !edit.carving && edit.match(pathname.Slashed(dir)+anyChild, false) != nil
}

// others returns the scratch directories of other callers.
func (k *core) others() []string {
	if k.scratch == "" {
		return nil
	}
	var out []string
	parent := filepath.Dir(k.scratch)
	entries, _ := os.ReadDir(parent) // what cannot be listed cannot be reached either
	for _, e := range entries {
		if path := filepath.Join(parent, e.Name()); path != k.scratch {
			out = append(out, path)
		}
	}
	return out
}

// walk adds what lies in one directory of the boundary, which is frozen if it is kept as a
// whole.
func (c *SandboxPaths) walk(k *core, root string, frozen bool) {
	// What cannot be listed cannot be opened by a command either.
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return nil
		}
		name, dir := pathname.Slashed(path), d.IsDir()
		if k.deny.read.holds(name, dir) {
			c.Denied = append(c.Denied, path)
			return skip(dir)
		}
		if k.files.unread.holds(name, dir) {
			k.files.hide(c, path, k.scratch)
			return skip(dir)
		}
		switch {
		case dir && d.Name() == ".git":
			// Git must work: its hooks are what others run. What a command adds to
			// its configuration is looked at afterwards.
			c.ReadOnly = append(c.ReadOnly, gitrepo.Hooks(path)...)
			return fs.SkipDir
		case frozen:
		case k.deny.edit.holds(name, dir), k.files.unwritten.holds(name, dir):
			c.ReadOnly = append(c.ReadOnly, path)
		case k.shielded[pathname.Folded.Of(d.Name())] && (dir || filepath.Dir(path) == root):
			c.ReadOnly = append(c.ReadOnly, path)
		}
		return nil
	})
}

// holds reports whether a path is meant, none of whose directories is, or all that is
// in it.
func (m *matcher) holds(path string, dir bool) bool {
	return m.matchLeaf(path, dir) != nil || dir && m.takesAll(path)
}

// takesAll reports whether all that is in a directory is meant, whatever its name: then
// the directory can be held as a whole, with what appears in it later.
func (m *matcher) takesAll(dir string) bool {
	return !m.carving && len(m.byDir) > 0 && m.matchLeaf(dir+anyChild, false) != nil
}

func skip(dir bool) error {
	if dir {
		return fs.SkipDir
	}
	return nil
}

// named returns what the rules of m name wherever it is: paths without a
// wildcard, and directories all of whose content is meant.
func named(m *matcher) []string {
	if m.carving {
		return nil // the walk knows the exceptions
	}
	var out []string
	for name := range m.byPath {
		out = append(out, pathname.Native(name))
	}
	for dir, patterns := range m.byDir {
		whole := slices.ContainsFunc(patterns, func(p *pattern) bool { return len(p.elements) == 1 && p.elements[0] == "**" })
		if whole && strings.Count(dir, "/") > 1 {
			out = append(out, pathname.Native(dir))
		}
	}
	return out
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}
