package ignore

import (
	"bytes"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/builtin/internal/search/walk"
)

// Files are the contents of the ignore files of one directory, nil where there is none or it cannot be read.
type Files struct {
	Rg, Dot, Git, Exclude []byte
	Repo                  bool // the directory holds .git or .jj
}

// Equal reports whether the contents are the same.
func (r Files) Equal(o Files) bool {
	return r.Repo == o.Repo && bytes.Equal(r.Rg, o.Rg) && bytes.Equal(r.Dot, o.Dot) && bytes.Equal(r.Git, o.Git) &&
		bytes.Equal(r.Exclude, o.Exclude)
}

// Some reports whether the directory has rules or is the root of a repository.
func (r Files) Some() bool {
	return r.Repo || len(r.Rg)+len(r.Dot)+len(r.Git)+len(r.Exclude) > 0
}

// Size is how many bytes ReadFiles has taken of its room for the contents.
func (r Files) Size() int64 { return int64(len(r.Rg) + len(r.Dot) + len(r.Git) + len(r.Exclude)) }

// Parse parses the rules; depth and above are those of DirRules.
func (r Files) Parse(depth int, above string, room *Budget) *DirRules {
	return &DirRules{
		Depth: depth, Above: above, Repo: r.Repo,
		Rg: Parse(r.Rg, room), Dot: Parse(r.Dot, room), Git: Parse(r.Git, room),
		Excl: Parse(r.Exclude, room),
	}
}

// FileNames are the entries of a directory that decide what is ignored.
var FileNames = []string{RgIgnore, DotIgnore, GitIgnore, ".git", ".jj"}

// IsFile reports whether a name is one of FileNames.
func IsFile(name string) bool { return slices.Contains(FileNames, name) }

// ReadFiles reads the ignore files among the entries of the directory dir below root; at is the real path of root.
// polled says that one of them can change without an event for the directory, because it is a link, has several names,
// or lies in another directory.
func ReadFiles(root *walk.Root, at, dir string, entries []walk.Entry, room *Budget) (r Files, polled bool) {
	for _, e := range entries {
		var to *[]byte
		name := e.Name
		switch name {
		case RgIgnore:
			to = &r.Rg
		case DotIgnore:
			to = &r.Dot
		case GitIgnore:
			to = &r.Git
		case ".git":
			r.Repo, polled = true, true
			if e.Kind == walk.File {
				if r.Exclude = linkedExclude(root, at, dir); !room.Take(int64(len(r.Exclude))) {
					r.Exclude = nil
				}
				continue
			}
			to, name = &r.Exclude, Exclude
		case ".jj":
			r.Repo = true
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
func readSmall(root *walk.Root, rel string, room *Budget) (content []byte, links uint64) {
	h, err := root.OpenWithin(rel)
	if err != nil {
		return nil, 0
	}
	defer h.Close()
	info, err := h.Stat()
	if err != nil || info.Kind != walk.File {
		return nil, 0
	}
	size := min(info.Size, MaxFile+1)
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

// StatFiles is ReadFiles for a directory that is not listed: it looks only for the names of ignore files, which costs
// less. some says that there are any.
func StatFiles(root *walk.Root, at, dir string, room *Budget) (r Files, some bool) {
	var entries []walk.Entry
	for _, name := range FileNames {
		if info, err := root.Stat(dir + name); err == nil {
			entries = append(entries, walk.Entry{Name: name, Kind: info.Kind})
		}
	}
	r, _ = ReadFiles(root, at, dir, entries, room)
	return r, len(entries) > 0
}

// linkedExclude reads the excludes of a repository whose .git is a file, as in a linked worktree or a submodule. The
// file names a Git directory; if that has a file commondir, it names the directory of the repository. at is the real
// path of root; dir leads from there to the file, "" or ending in a slash.
func linkedExclude(root *walk.Root, at, dir string) []byte {
	file, _ := readSmall(root, dir+".git", nil)
	named, ok := bytes.CutPrefix(file, []byte("gitdir: "))
	if !ok {
		return nil
	}
	git := from(filepath.Join(at, filepath.FromSlash(dir)), named)
	if common := readIn(git, "commondir"); len(common) > 0 {
		git = from(git, common)
	}
	return readIn(filepath.Join(git, "info"), "exclude")
}

// from returns the path in the first line of file, which lies in dir.
func from(dir string, file []byte) string {
	line, _, _ := strings.Cut(string(file), "\n")
	path := filepath.FromSlash(strings.TrimSuffix(line, "\r"))
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return filepath.Clean(path)
}

// readIn reads a small file in a directory that need not lie below any root.
func readIn(dir, name string) []byte {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil
	}
	root, err := walk.OpenRoot(real)
	if err != nil {
		return nil
	}
	defer root.Close()
	content, _ := readSmall(root, name, nil)
	return content
}
