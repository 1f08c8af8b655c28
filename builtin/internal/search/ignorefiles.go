package search

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/search/ignore"
	"github.com/toolhost/toolhost/builtin/internal/search/walk"
)

// ancestor is a directory above the path that is searched.
type ancestor struct {
	rules ignore.Files
	above string // the path from it to the searched path
	path  string
	bare  bool       // it has no ignore files, and creating one would change stamp
	stamp walk.Stamp // of the directory, examined before its ignore files
}

// ancestors reads the ignore files of the directories above a path, the nearest last. It reuses what before has of a
// directory if that still holds.
func ancestors(path string, before []ancestor) []ancestor {
	room := ignore.NewBudget(ignore.MaxTree)
	var out []ancestor
	for p := path; filepath.Dir(p) != p; p = filepath.Dir(p) {
		dir := filepath.Dir(p)
		i := slices.IndexFunc(before, func(a ancestor) bool { return a.path == dir })
		if i >= 0 && before[i].holds() {
			out = append(out, before[i])
			continue
		}
		a := ancestor{path: dir}
		if a.read(room) {
			a.above, _ = relativeTo(dir, path)
			out = append(out, a)
		}
	}
	slices.Reverse(out)
	return out
}

// read looks at the directory. It reports false when it cannot be opened.
func (a *ancestor) read(room *ignore.Budget) bool {
	root, err := walk.OpenRoot(a.path)
	if err != nil {
		return false
	}
	defer root.Close()
	at := time.Now().UnixNano()
	info, err := root.Stat(".")
	rules, some := ignore.StatFiles(root, a.path, "", room)
	a.rules, a.stamp = rules, info.Stamp
	a.bare = !some && err == nil && root.Local() && !racy(info.Stamp, at)
	return true
}

// holds reports whether the directory is known to have no ignore files still: creating one would change its times.
func (a *ancestor) holds() bool {
	if !a.bare {
		return false
	}
	info, err := walk.Lstat(a.path)
	return err == nil && info.Stamp == a.stamp
}

// allHold reports whether all directories above a path were read, and each is known to have no ignore files still.
func allHold(path string, all []ancestor) bool {
	return len(all) == strings.Count(path, string(filepath.Separator)) &&
		!slices.ContainsFunc(all, func(a ancestor) bool { return !a.holds() })
}

// above adds the rules of the directories above the searched one to a chain.
func (l *listing) above(chain *ignore.Chain) *ignore.Chain {
	for _, a := range ancestors(l.path, nil) {
		if l.scope.Name != "" {
			break
		}
		chain = chain.Push(a.rules.Parse(0, a.above, l.room))
	}
	for i, c := range l.start {
		if i == 0 {
			rules, _ := ignore.StatFiles(l.root, l.path, "", l.room)
			chain = chain.Push(rules.Parse(0, "", l.room))
		}
		if c == '/' && i < len(l.start)-1 {
			rules, _ := ignore.StatFiles(l.root, l.path, l.start[:i+1], l.room)
			chain = chain.Push(rules.Parse(i+1, "", l.room))
		}
	}
	return chain
}
