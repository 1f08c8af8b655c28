package guard

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"toolhost/guard/internal/gitrepo"
	"toolhost/guard/internal/pathname"
	"toolhost/guard/internal/wildcard"
	"toolhost/guard/settings"
)

// commandFiles is what the settings say, beyond the rules, of the files that
// contained commands may touch: sandbox.filesystem and sandbox.credentials.files. It is the kernel's to hold.
type commandFiles struct {
	// unread and unwritten are what they must not read and write.
	unread, unwritten *matcher
	// readable and writable are allowRead and allowWrite.
	readable, writable []string
}

func (c *compiler) commandFiles(set settings.Sandbox, s pathname.Spelling) commandFiles {
	f := set.Filesystem
	return commandFiles{
		unread: c.withheld(slices.Concat(f.DenyRead, set.Credentials.Files), s), unwritten: c.withheld(f.DenyWrite, s),
		readable: c.opened(f.AllowRead), writable: slices.DeleteFunc(c.opened(f.AllowWrite), c.neverWritable),
	}
}

// neverWritable reports whether no sandbox can open a directory: it is all there is, or
// every sandbox has one of its own in its place.
func (c *compiler) neverWritable(dir string) bool {
	never := dir == filepath.Dir(dir) || slices.ContainsFunc([]string{"/dev", "/proc", "/sys"}, func(own string) bool { return pathname.Within(pathname.Slashed(dir), own) })
	if never {
		c.warnings = append(c.warnings, fmt.Sprintf("sandbox.filesystem.allowWrite: %s cannot be opened to commands; name the directories that are meant", dir))
	}
	return never
}

// any reports whether commands are denied a file.
func (f commandFiles) any() bool { return !f.unread.empty() || !f.unwritten.empty() }

// withheld compiles the paths that commands are denied, in which wildcards mean
// what they mean in rules.
func (c *compiler) withheld(entries []settings.Entry, s pathname.Spelling) *matcher {
	m := newMatcher(s)
	for _, e := range entries {
		r := &rule{text: e.Text, source: e.Where()}
		p, err := compilePattern(c.absolute(e), "")
		if err != nil {
			c.warnings = append(c.warnings, fmt.Sprintf("%s: sandbox: %q: %v; it guards the literal path", e.Where(), e.Text, err))
			p = literalPattern(c.absolute(e), "")
		}
		p.rule, p.bare = r, false
		if q, ok := c.aliased(p, true); ok {
			m.add(q)
		}
		m.add(p)
	}
	return m
}

// opened returns the paths that are opened to commands, by their real names.
func (c *compiler) opened(entries []settings.Entry) []string {
	var out []string
	for _, e := range entries {
		name := strings.TrimSuffix(c.absolute(e), "/**")
		if wildcard.HasMeta(name) {
			c.warnings = append(c.warnings, fmt.Sprintf("%s: sandbox.filesystem: %q opens nothing: name the directory, without wildcards", e.Where(), e.Text))
			continue
		}
		real := c.place(pathname.Native(name)).Real
		if linkedWithin(name, pathname.Slashed(real), c.bounds) {
			c.warnings = append(c.warnings, fmt.Sprintf("%s: sandbox.filesystem: %q: %v", e.Where(), e.Text, errLinkWithin))
			continue
		}
		out = append(out, real)
	}
	return out
}

// absolute returns the slash path of an entry of sandbox.filesystem: unlike in rules a
// slash in front begins an absolute path, and another path is relative to the
// directory of the settings.
func (c *compiler) absolute(e settings.Entry) string {
	name := strings.TrimSpace(e.Text)
	switch {
	case name == "~" || strings.HasPrefix(name, "~/"):
		name = pathname.Slashed(c.home.Given) + name[1:]
	case filepath.IsAbs(name):
		name = pathname.Slashed(name)
	case e.Root != "":
		name = pathname.Slashed(e.Root) + "/" + name
	default:
		name = pathname.Slashed(c.roots[0].Given) + "/" + name
	}
	return path.Clean(name)
}

// withholds reports whether a path, none of whose directories is meant, is denied to
// commands as a whole.
func (f commandFiles) withholds(name string, dir bool) bool {
	return f.unread.matchLeaf(pathname.Slashed(name), dir) != nil && !withinAny(name, f.readable) &&
		!slices.ContainsFunc(f.readable, func(open string) bool { return pathname.Within(pathname.Slashed(open), pathname.Slashed(name)) })
}

// widen adds to the directories of the boundary what else commands may write.
func (f commandFiles) widen(c *SandboxPaths) {
	for _, name := range f.writable {
		if exists(name) {
			c.Writable = append(c.Writable, name)
			c.ReadOnly = append(c.ReadOnly, protectedIn(name)...)
		}
	}
	c.Writable = outermostOf(c.Writable)
}

// withhold adds what commands are denied by name.
func (f commandFiles) withhold(c *SandboxPaths, scratch string) {
	c.ReadOnly = append(c.ReadOnly, named(f.unwritten)...)
	for _, name := range named(f.unread) {
		f.hide(c, name, scratch)
	}
}

// hide takes a path out of the sight of commands, but for what is opened again below
// it, and for the directory of their temporary files.
func (f commandFiles) hide(c *SandboxPaths, name, scratch string) {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real // as all others are given
	}
	if withinAny(name, f.readable) {
		return
	}
	below := func(dir string) bool { return pathname.Within(pathname.Slashed(dir), pathname.Slashed(name)) }
	open := slices.DeleteFunc(slices.Clone(f.readable), func(dir string) bool { return !below(dir) || !exists(dir) })
	if len(open) == 0 && (scratch == "" || !below(scratch)) {
		c.Denied = append(c.Denied, name)
		return
	}
	if !exists(name) {
		return // looked for before every command
	}
	c.Masked = append(c.Masked, name)
	for _, dir := range c.Writable {
		if dir != scratch && below(dir) && !withinAny(dir, open) {
			c.Denied = append(c.Denied, dir)
		}
	}
	for _, dir := range open {
		if !withinAny(dir, c.Writable) || withinAny(name, c.Writable) {
			c.Shown = append(c.Shown, dir)
		}
	}
}

// protectedIn returns what in a directory that is opened to commands is run or read by
// other programs, as far as it is there: the hooks of a repository, settings.
func protectedIn(dir string) []string {
	var out []string
	entries, _ := os.ReadDir(dir) // what cannot be listed cannot be written by a command either
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch name := pathname.Folded.Of(e.Name()); {
		case e.IsDir() && name == ".git":
			out = append(out, gitrepo.Hooks(path)...)
		case shieldNames()[name]:
			out = append(out, path)
		}
	}
	return out
}

// outermostOf drops what lies in another one of the directories.
func outermostOf(dirs []string) []string {
	slices.Sort(dirs)
	dirs = slices.Compact(dirs)
	return slices.DeleteFunc(slices.Clone(dirs), func(dir string) bool {
		return slices.ContainsFunc(dirs, func(other string) bool {
			return other != dir && pathname.Within(pathname.Slashed(dir), pathname.Slashed(other))
		})
	})
}

// withinAny reports whether a path is one of dirs or lies in one.
func withinAny(name string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return pathname.Within(pathname.Slashed(name), pathname.Slashed(dir)) })
}
