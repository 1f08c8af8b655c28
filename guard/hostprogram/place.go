package hostprogram

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/internal/realpath"
)

// distrusted are the files and directories that tools or commands of this process may write. They stay so: what was
// planted there does not go away with a setting.
var distrusted = struct {
	sync.RWMutex
	places map[string]bool
}{places: map[string]bool{}}

// Distrust names files and directories, absolute, in which tools or commands can write. Until it was called, those of
// [DistrustWorkspace] are distrusted.
func Distrust(paths ...string) {
	for _, path := range paths {
		if path == "" {
			continue
		}
		path = filepath.Clean(path)
		distrusted.RLock()
		known := within(path, slices.Collect(maps.Keys(distrusted.places)))
		distrusted.RUnlock()
		if !known {
			distrusted.Lock()
			distrusted.places[path] = true
			distrusted.Unlock()
		}
	}
}

// within reports whether a path is one of some places or lies below one.
func within(path string, places []string) bool {
	return slices.ContainsFunc(places, func(place string) bool {
		return pathname.Within(pathname.Slashed(path), pathname.Slashed(place))
	})
}

// writablePlaces returns the places that [Distrust] was called with, sorted.
func writablePlaces() []string {
	distrusted.RLock()
	defer distrusted.RUnlock()
	if len(distrusted.places) == 0 {
		if dir := workspace(); dir != "" {
			return []string{dir}
		}
	}
	return slices.Sorted(maps.Keys(distrusted.places))
}

// DistrustWorkspace is [Distrust] for the repository or project that the working directory lies in: a host that works
// there can have written it.
func DistrustWorkspace() { Distrust(workspace()) }

// workspace returns the directory of the outermost repository or project that the working directory lies in, or the
// working directory itself. It is "" in the home directory and above it.
func workspace() string {
	dir, err := os.Getwd()
	if err != nil || holdsHome(dir) {
		return ""
	}
	for at := dir; !holdsHome(at) && at != filepath.Dir(at); at = filepath.Dir(at) {
		for _, mark := range []string{".git", ".toolhost", ".claude", ".mcp.json"} {
			if _, err := os.Lstat(filepath.Join(at, mark)); err == nil {
				dir = at
			}
		}
	}
	return dir
}

// holdsHome reports whether a directory is the home directory or above it.
func holdsHome(dir string) bool {
	home, err := os.UserHomeDir()
	return err == nil && pathname.Within(pathname.Slashed(home), pathname.Slashed(dir))
}

// Exposed reports whether tools or commands can write a file or directory, or something on the way to it.
func Exposed(path string) bool { return nowWritable().exposed(path) != "" }

// A writable is what tools or commands can write at one moment. The places are looked at once for all paths that a
// program's start depends on: a host with many workspaces has many places.
type writable struct {
	places  []string
	isPlace func(fs.FileInfo) bool
}

func nowWritable() writable {
	places := writablePlaces()
	return writable{slices.Clip(places), samePlace(places)}
}

// exposed returns the file or directory on the way to an absolute path that tools or commands can write, or "". It
// examines every link and directory on the way, and a path may name a file that does not exist yet.
func (w writable) exposed(path string) string {
	places, at := w.places, ""
	look := func(name string) (fs.FileInfo, error) {
		info, err := os.Lstat(name)
		if err == nil && info.IsDir() && w.isPlace(info) {
			places = append(places, name) // another name of the place: in other case, or mounted
		}
		canChange := err != nil || info.Mode()&fs.ModeSymlink == 0 && modifiable(name, info)
		if at == "" && canChange && within(name, places) {
			at = name
		}
		return info, err
	}
	if _, err := realpath.Trace(path, look); err != nil {
		return path // the path leads in a circle, or through a directory that this process cannot read
	}
	if at == "" && runtime.GOOS == "windows" && within(filepath.Clean(path), places) {
		return path // links on the rest of the way are not examined
	}
	return at
}

// Limits of the examination of a program.
const (
	// maxScripts is how many interpreters may be scripts in turn.
	maxScripts = 4
	// maxFirstLine is the longest first line of a script, in bytes, as the kernel reads it.
	maxFirstLine = 256
	// maxLinkSearch is how many names are compared with a file that has several.
	maxLinkSearch = 200_000
)

// isSafe reports whether commands can change neither a program nor, to a depth, the interpreters that its first line
// names.
func (w writable) isSafe(file string, info fs.FileInfo, depth int) bool {
	if depth == 0 || w.exposed(file) != "" || w.isLinked(file, info) {
		return false
	}
	for _, name := range Interpreters(file) {
		if !filepath.IsAbs(name) {
			return false
		}
		info, err := os.Stat(name)
		if err != nil || !w.isSafe(name, info, depth-1) {
			return false
		}
	}
	return true
}

// Interpreters returns the paths of the programs that the first line of a script names: its interpreter, and the one
// that env starts. env finds a name without a separator in the PATH that programs of the host get.
func Interpreters(file string) (paths []string) {
	f, err := os.Open(file)
	if err != nil {
		return nil // a file that can be executed and not read is a binary
	}
	defer f.Close()
	head := make([]byte, maxFirstLine)
	n, _ := f.Read(head) // an empty file has no first line
	line, _, _ := strings.Cut(string(head[:n]), "\n")
	line, ok := strings.CutPrefix(line, "#!")
	words := strings.Fields(line)
	if !ok || len(words) == 0 {
		return nil
	}
	paths = words[:1]
	if filepath.Base(words[0]) != "env" {
		return paths
	}
	for _, word := range words[1:] {
		if strings.HasPrefix(word, "-") || strings.Contains(word, "=") {
			continue
		}
		if !strings.Contains(word, "/") {
			if word = InPath(word); word == "" {
				continue // the value of an option
			}
		}
		return append(paths, word)
	}
	return paths
}

// InPath returns the path of the program that a program of the host would find under a name, or "". Unlike the result
// of [Find], it can lead to a place where commands write.
func InPath(name string) string {
	kept, _ := nowWritable().entries(os.Getenv("PATH"))
	for _, dir := range kept {
		if file, err := executable(dir, name); err == nil {
			return file
		}
	}
	return ""
}

// isLinked reports whether a file that this user can write may have another name where commands write. Among too many
// names it may.
func (w writable) isLinked(file string, info fs.FileInfo) bool {
	id, names := realpath.Identify(info)
	if names < 2 || !modifiable(file, info) {
		return false
	}
	searched, linked := 0, false
	for _, place := range w.places {
		_ = filepath.WalkDir(place, func(_ string, d fs.DirEntry, err error) error {
			if searched++; searched > maxLinkSearch {
				linked = true
			}
			if linked {
				return fs.SkipAll
			}
			if err != nil || !d.Type().IsRegular() {
				return nil
			}
			if info, err := d.Info(); err == nil {
				other, _ := realpath.Identify(info)
				linked = other == id
			}
			return nil
		})
	}
	return linked
}
