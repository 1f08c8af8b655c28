package guard

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/pathname"
)

// dropStray takes out of the lists the links that a rule's pattern is on, but not what they lead to: a sandbox holds what is
// behind a link, and a command that may make one (x.key, which leads to the root) would shut itself and all others out.
func (c *SandboxPaths) dropStray() {
	c.Denied = slices.DeleteFunc(c.Denied, c.Harmless)
	c.ReadOnly = slices.DeleteFunc(c.ReadOnly, func(name string) bool {
		real, _, ok := c.behind(name)
		return ok && c.holdsWritable(real)
	})
}

// Harmless reports whether name is a link that a command could make and after which nothing is hidden, since commands could do
// nothing any more, not even remove it: a directory that they write in as a whole, or above one, and the programs of the system. Whatever else
// a denied link leads to is hidden.
func (c *SandboxPaths) Harmless(name string) bool {
	real, dir, ok := c.behind(name)
	return ok && (dir && c.holdsWritable(real) || ofSystem(real, dir))
}

// after returns where a symbolic link leads that lies where commands write, and whether to a directory.
func (c *SandboxPaths) behind(name string) (real string, dir, ok bool) {
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

// holdsWritable reports whether a directory is one that commands write in, or lies above one.
func (c *SandboxPaths) holdsWritable(dir string) bool {
	return slices.ContainsFunc(c.Writable, func(w string) bool { return pathname.Within(pathname.Slashed(w), pathname.Slashed(dir)) })
}

// ofSystem reports whether something belongs to the programs of the system, without which there are no commands: what lies in
// /usr and the like, and directories at the top.
func ofSystem(real string, dir bool) bool {
	name := pathname.Slashed(real)
	return dir && strings.Count(name, "/") < 2 ||
		slices.ContainsFunc([]string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/nix", "/gnu", "/System", "/Library"}, func(own string) bool { return pathname.Within(name, own) })
}
