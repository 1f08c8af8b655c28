package sandboxpool

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/guard"
)

// maxPipeLook bounds each part of the search for named pipes of the host, in directory entries. The directories where a part begins
// share it, and below each of them the nearest entries come first. The search takes a few milliseconds, while the sandbox is started.
const maxPipeLook = 4000

// maxPipeEntries bounds how many entries of one directory are examined.
const maxPipeEntries = 1000

// maxPipeWatches bounds how many directories are watched for new pipes, in each part of the search: those that it reaches first.
const maxPipeWatches = 64

// A pipeLook is a bounded search for named pipes of host programs outside of the directories that commands write: in the home
// directory, next to the workspace, in the entries of the host that commands see in their private directories, and elsewhere. The
// kernel cannot keep a command from opening pipes unless each of them is hidden.
type pipeLook struct {
	pipes map[string]*coveredFile
	dirs  []string // the first that were examined
}

// lookForPipes searches the private directories concurrently, after synced is closed: they are up to date then.
func lookForPipes(policy *guard.Policy, paths guard.SandboxPaths, synced <-chan struct{}) *pipeLook {
	l := &pipeLook{pipes: map[string]*coveredFile{}}
	if runtime.GOOS != "linux" {
		return l
	}
	skip := map[string]bool{}
	for _, dir := range slices.Concat(paths.Writable, paths.Denied, paths.Masked, unsearched()) {
		skip[dir] = true
	}
	for _, place := range policy.Commands().Private() {
		skip[place.Name()] = true
	}
	below, belowSkip := &pipeLook{pipes: map[string]*coveredFile{}}, maps.Clone(skip)
	var private sync.WaitGroup
	private.Go(func() {
		<-synced
		var shown []string
		for _, place := range policy.Commands().Private() {
			for _, entry := range place.Shown() {
				shown = append(shown, filepath.Join(place.Name(), entry))
			}
		}
		below.in(shown, belowSkip, maxPipeLook)
	})
	var near []string
	for _, dir := range paths.Writable {
		near = append(near, filepath.Dir(dir))
	}
	home, err := os.UserHomeDir()
	if err == nil {
		home, err = filepath.EvalSymlinks(home)
	}
	if err == nil {
		l.in([]string{home}, skip, maxPipeLook)
	}
	l.in(near, skip, maxPipeLook)
	if !skip["/"] {
		l.in(directories("/"), skip, maxPipeLook)
	}
	private.Wait()
	maps.Copy(l.pipes, below.pipes)
	l.dirs = append(l.dirs, below.dirs...)
	return l
}

// in searches directories and those below them, except those to skip. Each directory has an equal share of what the ones before
// it have left: a large one does not end the search of the others.
func (l *pipeLook) in(dirs []string, skip map[string]bool, left int) {
	watches := len(l.dirs) + maxPipeWatches
	l.dirs = append(l.dirs, dirs[:min(len(dirs), maxPipeWatches)]...)
	for i, dir := range dirs {
		left -= l.below(dir, skip, left/(len(dirs)-i), watches)
	}
}

// below searches a directory and those below it, the nearest first, and returns how many entries it has examined.
func (l *pipeLook) below(start string, skip map[string]bool, most, watches int) (used int) {
	for queue := []string{start}; len(queue) > 0 && used < most; queue = queue[1:] {
		dir := queue[0]
		if skip[dir] {
			continue
		}
		skip[dir] = true
		entries := readSome(dir, min(most-used, maxPipeEntries))
		used += len(entries) + 1
		if dir != start && len(l.dirs) < watches {
			l.dirs = append(l.dirs, dir)
		}
		for _, e := range entries {
			switch path := filepath.Join(dir, e.Name()); {
			case e.IsDir():
				queue = append(queue, path)
			case e.Type()&fs.ModeNamedPipe != 0:
				if pipe, err := lookAt(path); err == nil {
					l.pipes[path] = pipe
				}
			}
		}
	}
	return used
}

// readSome lists at most so many entries of a directory, none if it cannot be listed.
func readSome(dir string, most int) []fs.DirEntry {
	fd, err := syscall.Open(dir, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0) // os.Open adds five calls; a pipe must not keep the look waiting
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), dir)
	defer f.Close()
	entries, _ := f.ReadDir(most)
	return entries
}

// directories returns the directories in a directory.
func directories(in string) []string {
	var dirs []string
	for _, e := range readSome(in, maxPipeEntries) {
		if e.IsDir() {
			dirs = append(dirs, filepath.Join(in, e.Name()))
		}
	}
	return dirs
}

// unsearched returns the directories of programs of the system, those whose pipes are the sandbox's own, and those of other than
// local file systems, where a search could wait for a network.
func unsearched() []string {
	list := []string{"/proc", "/sys", "/dev", "/usr", "/lib", "/lib64", "/bin", "/sbin", "/boot", "/nix", "/gnu", "/snap"}
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return append(list, "/")
	}
	for line := range strings.Lines(string(table)) {
		about, kind, _ := strings.Cut(line, " - ")
		kind, _, _ = strings.Cut(kind, " ")
		if fields := strings.Fields(about); len(fields) > 4 && !slices.Contains(localKinds, kind) {
			list = append(list, unescapeMount.Replace(fields[4]))
		}
	}
	return list
}

// localKinds are file systems on disks of this machine, or in its memory.
var localKinds = []string{"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "overlay", "tmpfs"}

// unescapeMount reads names as the kernel writes them in the table of mounts.
var unescapeMount = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// hideFirst hides the pipes that existed when the sandbox was started.
func (c *Sandbox) hideFirst(l *pipeLook) error {
	c.pipes, c.outside, c.piped = l.pipes, l.dirs, time.Now()
	if len(l.pipes) == 0 {
		return nil
	}
	return c.deny(slices.Collect(maps.Keys(l.pipes))...)
}

// hidePipes hides pipes that have appeared since the last search. No command waits for it. The caller holds the lock.
func (f follower) hidePipes() {
	if time.Since(f.box.piped) < lookAgain {
		return
	}
	f.box.piped = time.Now()
	synced := make(chan struct{})
	close(synced)
	f.pool.ends.Go(func() { f.hide(lookForPipes(f.box.policy, f.box.paths, synced).pipes) })
}

// hide hides those of pipes that are not hidden yet.
func (f follower) hide(pipes map[string]*coveredFile) {
	f.pool.mu.Lock()
	defer f.pool.mu.Unlock()
	var fresh []string
	for path, pipe := range pipes {
		if was := f.box.pipes[path]; was == nil || !was.same(pipe) {
			f.box.pipes[path] = pipe
			fresh = append(fresh, path)
		}
	}
	if len(fresh) > 0 && f.box.life.Err() == nil && f.box.deny(fresh...) != nil {
		f.box.failed = true
	}
}

// appearedOutside hides a new path outside of the directories that commands write, if it is a pipe or contains some.
func (f follower) appearedOutside(path string, file *coveredFile) {
	const few = 256
	l := &pipeLook{pipes: map[string]*coveredFile{}}
	switch mode := file.info.Mode(); {
	case mode.IsDir():
		l.in([]string{path}, map[string]bool{}, few)
	case mode&fs.ModeNamedPipe != 0:
		l.pipes[path] = file
	}
	if len(l.pipes) > 0 {
		f.hide(l.pipes)
	}
}
