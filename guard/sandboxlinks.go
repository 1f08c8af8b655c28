package guard

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/pathname"
)

// dropStray removes from the lists the links whose targets must stay accessible: a sandbox protects the target of a
// link too, and a command that may create a link (x.key, which leads to the root) would lock itself and all other
// commands out.
func (c *SandboxPaths) dropStray() {
	c.Denied = slices.DeleteFunc(c.Denied, c.Harmless)
	c.ReadOnly = slices.DeleteFunc(c.ReadOnly, func(name string) bool {
		real, _, ok := c.linkTarget(name)
		return ok && c.holdsWritable(real)
	})
}

// Harmless reports whether name is a link that a command could have made, with a target that must stay visible: a
// directory in which commands write, or one above it, or a program of the system. If such a target were hidden,
// commands could do nothing, not even remove the link. Any other target of a denied link is hidden.
func (c *SandboxPaths) Harmless(name string) bool {
	real, dir, ok := c.linkTarget(name)
	return ok && (dir && c.holdsWritable(real) || ofSystem(real, dir))
}

// linkTarget returns the target of a symbolic link that lies where commands write, and whether it is a directory.
func (c *SandboxPaths) linkTarget(name string) (real string, dir, ok bool) {
	info, err := os.Lstat(name)
	if err != nil || info.Mode()&os.ModeSymlink == 0 || !withinAny(name, c.Writable) {
		return "", false, false
	}
	if real, err = filepath.EvalSymlinks(name); err != nil {
		return "", false, false
	}
	info, err = os.Lstat(real)
	return real, err == nil && info.IsDir(), err == nil
}

// holdsWritable reports whether commands write in a directory, or in one below it.
func (c *SandboxPaths) holdsWritable(dir string) bool {
	return slices.ContainsFunc(c.Writable,
		func(w string) bool { return pathname.Within(pathname.Slashed(w), pathname.Slashed(dir)) })
}

// ofSystem reports whether a file belongs to the programs of the system, without which no command works: it lies in
// /usr and the like, or is a directory at the top.
func ofSystem(real string, dir bool) bool {
	name := pathname.Slashed(real)
	return dir && strings.Count(name, "/") < 2 ||
		slices.ContainsFunc([]string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/nix", "/gnu", "/System", "/Library"},
			func(own string) bool { return pathname.Within(name, own) })
}
