package guard

import (
	"crypto/sha256"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/guard/internal/realpath"
	"github.com/toolhost/toolhost/guard/internal/rules"
	"github.com/toolhost/toolhost/guard/sandbox/execgate"
)

const (
	// lookAgain is how long the files that a program name stands for are cached.
	lookAgain = time.Second
	// maxHashes bounds the cached hashes of files.
	maxHashes = 4096
)

// An installation caches the programs in the directories of PATH.
type installation struct {
	dirs func() []string

	once  sync.Once
	names map[realpath.ID][]string // names of each file, read on first use: a command may add some later

	mu     sync.Mutex
	found  map[string]foundPrograms
	hashes map[hashKey][sha256.Size]byte
}

// foundPrograms are the files that a name stands for.
type foundPrograms struct {
	files []program
	until time.Time
}

// A program is a file in a directory of programs.
type program struct {
	path string // without links
	id   realpath.ID
	size int64
	// chosen says that the name is a link that the administrator can point to different programs of the same purpose,
	// such as vi.
	chosen bool
}

// A hashKey names the content of a file.
type hashKey struct {
	id    realpath.ID
	ctime time.Time
}

// installed is the installation of this machine.
var installed = &installation{dirs: programDirs}

// programDirs are the directories of programs.
func programDirs() []string {
	dirs := append(filepath.SplitList(os.Getenv("PATH")), "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin",
		"/sbin", "/bin")
	return slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(dirs))),
		func(dir string) bool { return !filepath.IsAbs(dir) })
}

// namesOf returns the names under which a file is installed; none if it is not an installed program.
func (in *installation) namesOf(id realpath.ID) []string {
	in.once.Do(func() {
		in.names = map[realpath.ID][]string{}
		for _, dir := range in.dirs() {
			entries, _ := os.ReadDir(dir) // an unreadable directory has no programs for us
			for _, e := range entries {
				info, err := os.Stat(filepath.Join(dir, e.Name()))
				if err != nil || !info.Mode().IsRegular() {
					continue
				}
				if id, _ := realpath.Identify(info); !slices.Contains(in.names[id], e.Name()) {
					in.names[id] = append(in.names[id], e.Name())
				}
			}
		}
	})
	return in.names[id]
}

// programs returns the files that a program name stands for.
func (in *installation) programs(name string) []program {
	in.mu.Lock()
	defer in.mu.Unlock()
	if f, ok := in.found[name]; ok && time.Now().Before(f.until) {
		return f.files
	}
	var files []program
	for _, dir := range in.dirs() {
		full := filepath.Join(dir, name)
		info, err := os.Stat(full)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		id, _ := realpath.Identify(info)
		if real, err := filepath.EvalSymlinks(full); err == nil && !slices.ContainsFunc(files,
			func(p program) bool { return p.id == id }) {
			to, _ := os.Readlink(full) // "" if it is not a link
			files = append(files, program{real, id, info.Size(), strings.HasPrefix(to, "/etc/alternatives/")})
		}
	}
	if in.found == nil {
		in.found = map[string]foundPrograms{}
	}
	in.found[name] = foundPrograms{files, time.Now().Add(lookAgain)}
	return files
}

// hash returns the hash of a file. It reads the file once until it changes. A file without a name can change
// undetected.
func (in *installation) hash(f execgate.File) (sum [sha256.Size]byte, ok bool) {
	key := hashKey{idOf(f), f.Ctime}
	in.mu.Lock()
	sum, ok = in.hashes[key]
	in.mu.Unlock()
	if ok && !f.Unlinked || f.Handle == nil {
		return sum, ok && !f.Unlinked
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(f.Handle, 0, f.Size+1)); err != nil {
		return sum, false
	}
	h.Sum(sum[:0])
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.hashes == nil || len(in.hashes) >= maxHashes {
		in.hashes = map[hashKey][sha256.Size]byte{}
	}
	in.hashes[key] = sum
	return sum, true
}

// same reports whether a file is an installed program, under another name or as a copy.
func (in *installation) same(f execgate.File, p program) bool {
	if p.id == idOf(f) {
		return true
	}
	if f.Size != p.size || f.Size == 0 {
		return false
	}
	file, err := os.Open(p.path)
	if err != nil {
		return false
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return false
	}
	sum, ok := in.hash(f)
	if !ok {
		return false
	}
	other, ok := in.hash(execgate.File{Handle: file, Dev: p.id.Device, Inode: p.id.Inode, Size: info.Size(),
		Ctime: info.ModTime()})
	return ok && sum == other
}

// idOf returns the identity of a file.
func idOf(f execgate.File) realpath.ID { return realpath.ID{Device: f.Dev, Inode: f.Inode} }

// copyTargets returns the programs in rules that a file is under a different name: it is a link to the program, or a
// copy. A file with several names in the directories of programs may be a different program by each name; it counts
// as the one that it is called by.
func copyTargets(f execgate.File, called []string, rules []*rules.Commands) (names []string) {
	own := installed.namesOf(idOf(f))
	for name := range execKnown().applets {
		if len(own) == 0 &&
			slices.ContainsFunc(installed.programs(name), func(p program) bool { return installed.same(f, p) }) {
			names = append(names, name)
		}
	}
	for _, c := range rules {
		for _, name := range c.Programs() {
			// An installed program is not a copy of another one.
			if slices.Contains(called, name) || slices.Contains(names, name) || len(own) > 0 && !slices.Contains(own, name) {
				continue
			}
			if slices.ContainsFunc(installed.programs(name),
				func(p program) bool { return installed.same(f, p) && p.is(name, called, own) }) {
				names = append(names, name)
			}
		}
	}
	return names
}

// is reports whether a file is the program p. called are the names by which the file was started, and own the names
// under which it is installed.
func (p program) is(name string, called, own []string) bool {
	if execKnown().applets[path.Base(filepath.ToSlash(p.path))] {
		return false
	}
	known := false
	for _, n := range called {
		if slices.Contains(own, n) {
			if known = true; family(n) == family(name) {
				return true
			}
		}
	}
	return !known || p.chosen
}

// DeniedPrograms returns the files of the installed programs that a rule denies with any arguments. It leaves out
// shells, which every command needs, and files with several names, which may be a different program by each.
func (c Commands) DeniedPrograms() (files []string) {
	if !c.p.data.execs {
		return nil
	}
	for _, name := range c.p.data.deny.Commands.Whole() {
		if name == "sh" || name == "bash" || execKnown().applets[name] {
			continue
		}
		for _, f := range installed.programs(name) {
			if path.Base(filepath.ToSlash(f.path)) == name && slices.Equal(installed.namesOf(f.id), []string{name}) {
				files = append(files, f.path)
			}
		}
	}
	return files
}

// family returns the name of a program without its version: python for python3.12.
func family(name string) string { return strings.TrimRight(name, "0123456789.-") }
