package rules

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/internal/realpath"
)

// whole returns the pattern for everything in a directory if spec only stands for the directory: "." and "/" match
// nothing otherwise.
func whole(spec string) string {
	switch spec {
	case ".", "./", "/", "/.", "/./":
		return "/**"
	case "//", "//.":
		return "//**"
	case "..", "../":
		return "../**"
	}
	return spec
}

// cleanPattern removes ".", ".." and doubled slashes within a pattern, because the paths to compare have none.
func cleanPattern(spec string) string {
	rest := strings.TrimLeft(spec, "/")
	if !strings.Contains(spec, "/./") && !strings.Contains(spec, "/../") && !strings.HasSuffix(spec, "/..") &&
		!strings.HasSuffix(spec, "/.") && !strings.Contains(rest, "//") {
		return spec
	}
	if below, ok := strings.CutPrefix(spec, "~/"); ok {
		return "~/" + cleanPattern(strings.TrimLeft(below, "/"))
	}
	lead := spec[:len(spec)-len(strings.TrimLeft(spec, "/"))]
	dot := ""
	if strings.HasPrefix(spec, "./") {
		dot = "./"
	}
	tail := ""
	if strings.HasSuffix(spec, "/") {
		tail = "/"
	}
	return dot + lead + strings.TrimLeft(path.Clean(spec), "/") + tail
}

// aliased returns the pattern with the real name of the directory that it begins with. It reports false if that has
// no symbolic link. An allow rule is not extended through a link that tools could change.
func (c *Compiler) aliased(p pattern, strict bool) (pattern, bool) {
	if p.bare {
		return pattern{}, false
	}
	n := 0
	for n < len(p.elements) && !pathname.HasMeta(p.elements[n]) {
		n++
	}
	dir := strings.TrimSuffix(p.base+"/"+strings.Join(p.elements[:n], "/"), "/")
	real := c.resolved(dir)
	if real == dir || (!strict || c.holdsBound(real)) && Redirected(dir, real, c.Bounds) != nil {
		return pattern{}, false
	}
	q := p
	q.base = ""
	q.elements = append(strings.Split(strings.TrimPrefix(pathname.Quote(real), "/"), "/"), p.elements[n:]...)
	return q, true
}

// holdsBound reports whether a directory is a root or lies above one. A deny rule does not apply through a link in
// the workspace to such a directory: otherwise creating a link would deny the whole root.
func (c *Compiler) holdsBound(dir string) bool {
	return slices.ContainsFunc(c.Bounds,
		func(b pathname.Place) bool { return pathname.Within(pathname.Slashed(b.Real), dir) })
}

// Redirected returns an error if dir leads to real through a link in one of the directories that tools can write to:
// tools could change the link, so an entry that opens dir could open any directory. Both names are slashed.
func Redirected(dir, real string, writable []pathname.Place) error {
	for _, w := range writable {
		for _, name := range w.Names() {
			if pathname.Within(dir, name) && real != pathname.Slashed(w.Real)+dir[len(name):] {
				return errRedirected
			}
		}
	}
	return nil
}

var errRedirected = errors.New("it is a symbolic link in the workspace, which tools could lead elsewhere, so it " +
	"opens nothing: name the directory itself")

// resolved returns the real name of a slash path. It resolves each directory once.
func (c *Compiler) resolved(name string) string {
	if name == "" || name == "/" || pathname.IsVolume(name) {
		return name
	}
	if real, ok := c.real[name]; ok {
		return real
	}
	if c.real == nil {
		c.real, c.lost = map[string]string{}, map[string]bool{}
	}
	parent, base := c.resolved(parentDir(name)), path.Base(name)
	var at string
	var err error
	if parent == "" || c.lost[parentDir(name)] { // then name may have links in it
		at, _, err = realpath.Follow(pathname.Native(parent + "/" + base))
	} else {
		at, _, err = realpath.FollowFrom(pathname.Native(parent), base)
	}
	if err != nil {
		c.real[name], c.lost[name] = name, true
		return name
	}
	c.real[name] = pathname.Slashed(at)
	return c.real[name]
}

func parentDir(name string) string { return name[:strings.LastIndexByte(name, '/')] }
