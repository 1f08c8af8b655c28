package search

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/toolhost/toolhost/builtin/internal/search/ignore"
)

// ripgrep follows no symbolic links in a tree: they could lead out of it, or form a loop. If nothing is found, or a
// Glob matches a link itself, the result names the links that were not followed.

// Limits of a note about links.
const (
	shownLinks    = 5   // how many it names
	examinedLinks = 200 // how many links that are wanted are examined
)

// linksNote returns a note that names the symbolic links of a listing that wanted accepts and whose target leads
// accepts. It returns "" if there are none.
func (l *listing) linksNote(wanted func(rel string) bool, leads func(rel, real string, dir bool) bool) string {
	var rels []string
	for _, f := range l.links {
		if rel := f.rel(); len(rels) < examinedLinks && wanted(rel) {
			rels = append(rels, rel)
		}
	}
	slices.SortFunc(rels, comparePaths)
	var names []string
	for _, rel := range rels {
		info, err := os.Lstat(l.real(rel))
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		real, err := filepath.EvalSymlinks(l.real(rel))
		if err != nil {
			continue
		}
		if info, err = os.Stat(real); err == nil && leads(rel, real, info.IsDir()) {
			names = append(names, printable(l.shown+rel))
		}
	}
	return linksText(names[:min(len(names), shownLinks)], max(0, len(names)-shownLinks))
}

func linksText(names []string, more int) string {
	switch {
	case len(names) == 0:
		return ""
	case more > 0:
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return validText(fmt.Sprintf("Symbolic links are not followed: %s. Pass one as path.", strings.Join(names, ", ")))
}

// linkNotes names the links that match. If neither a file nor a link matches, it names the links to directories in
// which something may match.
func (w *pathSet) linkNotes(l *listing, want *fileName, relative func(rel string) string, nothing bool) string {
	any := func(string, string, bool) bool { return true }
	if note := l.linksNote(w.match, any); note != "" || !nothing {
		return note
	}
	return l.linksNote(func(rel string) bool { return want.mayContain(relative(rel)) },
		func(_, _ string, dir bool) bool { return dir })
}

// linkNotes names the links whose targets lie outside of the searched directory; with globs, those whose targets the
// globs may choose.
func (s *search) linkNotes() string {
	globs := s.list.overrides
	return s.list.linksNote(anywhere, func(rel, real string, dir bool) bool {
		_, within := relativeTo(s.query.Path, real)
		switch {
		case globs == nil:
			return !within
		case dir:
			return s.mayChoose(rel)
		}
		return globs.Match(false, s.list.names(rel)...) == ignore.Kept
	})
}

// mayChoose reports whether the globs may choose what is in a directory.
func (s *search) mayChoose(rel string) bool {
	globs, names := s.list.overrides, s.list.names(rel)
	return globs.MayContain(names...) || globs.Match(true, names...) == ignore.Kept ||
		slices.ContainsFunc(s.query.Globs, func(glob string) bool {
			return !strings.Contains(glob, "/") || strings.HasPrefix(glob, "**/")
		})
}

// mayContain reports whether the pattern may match a path below a directory.
func (n *fileName) mayContain(dir string) bool {
	elements := strings.Split(n.text, "/")
	for i, name := range strings.Split(dir, "/") {
		switch {
		case i >= len(elements)-1:
			return false
		case elements[i] == "**":
			return true
		case !doublestar.MatchUnvalidated(elements[i], name):
			return false
		}
	}
	return true
}
