package search

import (
	"bytes"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/search/ignore"
	"github.com/toolhost/toolhost/builtin/internal/search/walk"
)

// ignoreFiles are the contents of the ignore files of one directory, nil where
// there is none or it cannot be read.
type ignoreFiles struct {
	rg, dot, git, exclude []byte
	repo                  bool // the directory holds .git or .jj
}

func (r ignoreFiles) equal(o ignoreFiles) bool {
	return r.repo == o.repo && bytes.Equal(r.rg, o.rg) && bytes.Equal(r.dot, o.dot) && bytes.Equal(r.git, o.git) &&
		bytes.Equal(r.exclude, o.exclude)
}

// some reports whether the directory has rules or is the root of a repository.
func (r ignoreFiles) some() bool {
	return r.repo || len(r.rg)+len(r.dot)+len(r.git)+len(r.exclude) > 0
}

// size is how many bytes readIgnoreFiles has taken of its room for the contents.
func (r ignoreFiles) size() int64 { return int64(len(r.rg) + len(r.dot) + len(r.git) + len(r.exclude)) }

// parse parses the rules; depth and above are those of ignore.DirRules.
func (r ignoreFiles) parse(depth int, above string, room *ignore.Budget) *ignore.DirRules {
	return &ignore.DirRules{
		Depth: depth, Above: above, Repo: r.repo,
		Rg: ignore.Parse(r.rg, room), Dot: ignore.Parse(r.dot, room), Git: ignore.Parse(r.git, room),
		Excl: ignore.Parse(r.exclude, room),
	}
}

// ignoreNames are the entries of a directory that decide what is ignored.
var ignoreNames = []string{ignore.RgIgnore, ignore.DotIgnore, ignore.GitIgnore, ".git", ".jj"}

func isIgnoreFile(name string) bool { return slices.Contains(ignoreNames, name) }

// maxIgnoreBytes is how many bytes the ignore files of one tree may take in memory, as text and parsed: some 100,000
// rules.
const maxIgnoreBytes = 32 << 20

// readIgnoreFiles reads the ignore files among the entries of the directory dir below root; at is the real path of
// root. polled says that one of them can change without an event for the directory, because it is a link, has several
// names, or lies in another directory.
func readIgnoreFiles(root *walk.Root, at, dir string, entries []walk.Entry, room *ignore.Budget) (r ignoreFiles,
	polled bool) {
	for _, e := range entries {
		var to *[]byte
		name := e.Name
		switch name {
		case ignore.RgIgnore:
			to = &r.rg
		case ignore.DotIgnore:
			to = &r.dot
		case ignore.GitIgnore:
			to = &r.git
		case ".git":
			r.repo, polled = true, true
			if e.Kind == walk.File {
				if r.exclude = linkedExclude(root, at, dir); !room.Take(int64(len(r.exclude))) {
					r.exclude = nil
				}
				continue
			}
			to, name = &r.exclude, ignore.Exclude
		case ".jj":
			r.repo = true
			continue
		default:
			continue
		}
		content, links := readSmall(root, dir+name, room)
		*to = content
		polled = polled || links > 1 || e.Kind == walk.Other
	}
	return r, polled
}

// readSmall reads an ignore file up to the size that is used, and returns how many names it has. The content is nil
// if the file cannot be read or does not fit into the room.
func readSmall(root *walk.Root, rel string, room *ignore.Budget) (content []byte, links uint64) {
	h, err := root.OpenWithin(rel)
	if err != nil {
		return nil, 0
	}
	defer h.Close()
	info, err := h.Stat()
	if err != nil || info.Kind != walk.File {
		return nil, 0
	}
	size := min(info.Size, ignore.MaxFile+1)
	if !room.Take(size) {
		return nil, info.Links
	}
	content, err = io.ReadAll(io.NewSectionReader(h, 0, size)) // a later query reads what is added meanwhile
	if err != nil {
		content = nil
	}
	room.Give(size - int64(len(content)))
	return content, info.Links
}

// ancestor is a directory above the path that is searched.
type ancestor struct {
	rules ignoreFiles
	above string // the path from it to the searched path
	path  string
	bare  bool       // it has no ignore files, and creating one would change stamp
	stamp walk.Stamp // of the directory, examined before its ignore files
}

// ancestors reads the ignore files of the directories above a path, the nearest last. It reuses what before has of a
// directory if that still holds.
func ancestors(path string, before []ancestor) []ancestor {
	room := ignore.NewBudget(maxIgnoreBytes)
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
	rules, some := statIgnoreFiles(root, a.path, "", room)
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

// statIgnoreFiles is readIgnoreFiles for a directory that is not listed: it looks only for the names of ignore files,
// which costs less. some says that there are any.
func statIgnoreFiles(root *walk.Root, at, dir string, room *ignore.Budget) (r ignoreFiles, some bool) {
	var entries []walk.Entry
	for _, name := range ignoreNames {
		if info, err := root.Stat(dir + name); err == nil {
			entries = append(entries, walk.Entry{Name: name, Kind: info.Kind})
		}
	}
	r, _ = readIgnoreFiles(root, at, dir, entries, room)
	return r, len(entries) > 0
}

// above adds the rules of the directories above the searched one to a chain.
func (l *listing) above(chain *ignore.Chain) *ignore.Chain {
	for _, a := range ancestors(l.path, nil) {
		if l.scope.Name != "" {
			break
		}
		chain = chain.Push(a.rules.parse(0, a.above, l.room))
	}
	for i, c := range l.start {
		if i == 0 {
			rules, _ := statIgnoreFiles(l.root, l.path, "", l.room)
			chain = chain.Push(rules.parse(0, "", l.room))
		}
		if c == '/' && i < len(l.start)-1 {
			rules, _ := statIgnoreFiles(l.root, l.path, l.start[:i+1], l.room)
			chain = chain.Push(rules.parse(i+1, "", l.room))
		}
	}
	return chain
}
