package search

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/toolhost/toolhost/builtin/internal/search/walk"
)

// openScope opens the directory to search, or the directory of the one file.
func openScope(scope Scope) (*listing, error) {
	path := filepath.Clean(scope.Path)
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("%w %s: the path is not absolute", ErrScope, scope.Path)
	}
	l := &listing{scope: scope}
	info, err := os.Lstat(path)
	if err != nil {
		return nil, fmt.Errorf("%w %s: %s", ErrScope, scope.called(path), reason(err))
	}
	name := ""
	switch {
	case scope.hides(path, info.IsDir()):
		return nil, fmt.Errorf("%w %s: %s", ErrScope, scope.called(path), reason(syscall.ENOENT))
	case info.Mode().IsRegular():
		path, name = filepath.Split(path)
		path = filepath.Clean(path)
	case !info.IsDir():
		return nil, fmt.Errorf("%w %s: it is neither a file nor a directory (%s)", ErrScope, scope.called(path),
			info.Mode().Type())
	}
	if name != "" {
		l.direct = true
		l.files = []file{{dir: &dir{}, name: name}}
	}
	if err := l.open(path); err != nil {
		return nil, fmt.Errorf("%w %s: %s", ErrScope, scope.called(path), reason(err))
	}
	if scope.Name != "" {
		called := scope.Name
		if l.direct {
			called = filepath.Dir(called)
		}
		l.shown = withSlash(filepath.ToSlash(called))
	}
	return l, nil
}

// open opens the working root if the directory lies in it, so that one tree serves all directories of the root.
// Otherwise it opens the directory itself.
func (l *listing) open(path string) (err error) {
	base := filepath.Clean(l.scope.Base)
	if rel, ok := relativeTo(l.scope.Base, path); ok && !l.direct && rel != "" {
		if root, err := walk.OpenRoot(base); err == nil {
			l.root, l.start, l.path = root, rel, base
			l.top, l.shown = withSlash(filepath.ToSlash(base)), ""
			sub, err := root.Sub(strings.TrimSuffix(rel, "/"))
			if err != nil {
				root.Close()
				return err
			}
			return sub.Close()
		}
	}
	if l.root, err = walk.OpenRoot(path); err != nil {
		return err
	}
	l.path, l.top = path, withSlash(filepath.ToSlash(path))
	l.shown = l.top
	if rel, ok := relativeTo(l.scope.Base, path); ok {
		l.shown = rel
	}
	return nil
}

// relativeTo returns the path from base to path, "" or ending in a slash. It reports false if path is not within
// base.
func relativeTo(base, path string) (string, bool) {
	if base == "" {
		return "", false
	}
	rel, err := filepath.Rel(base, path)
	switch {
	case err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)):
		return "", false
	case rel == ".":
		return "", true
	}
	return filepath.ToSlash(rel) + "/", true
}

func withSlash(path string) string {
	if strings.HasSuffix(path, "/") {
		return path
	}
	return path + "/"
}
