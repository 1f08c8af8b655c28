package guard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/guard/internal/command"
	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/internal/realpath"
)

// aliasing are kinds of file systems that give one file several names, such as ENV~1 for .env. Others that may do so,
// such as shares of a virtual machine and FUSE file systems, are probed.
const (
	aliasing      = "cifs drvfs exfat fuseblk hfs hfsplus msdos ntfs ntfs3 smb3 smbfs vfat"
	mayBeAliasing = "9p fakeowner fuse grpcfuse prl_fs vboxsf virtiofs vmhgfs"
)

// A mount is a file system in the tree.
type mount struct{ dir, kind string }

// manyNames are the mounts, in and above some directories, of file systems that give one file several names. Rules
// are compared with the name that the directory lists for a file. The kernel hides and protects a file under one name
// only, so that commands could reach it under another one.
type manyNames []mount

// mountPatience is how long a file system in a root may take to answer.
const mountPatience = 10 * time.Second

// An ask is a question to a file system that it has not answered yet.
type ask struct {
	since  time.Time
	answer chan struct{} // closed when it has answered
}

var asks sync.Map // by path

// Answers reports whether the file system of a path answers in time. A network file system whose server is gone does
// not: each system call on it waits. The patience counts from the first question, so that later calls do not wait once
// more.
func Answers(path string, patience time.Duration) bool {
	now := &ask{time.Now(), make(chan struct{})}
	before, pending := asks.LoadOrStore(path, now)
	if !pending {
		go func() {
			_, _ = os.Stat(path) // an error is an answer
			asks.Delete(path)
			close(now.answer)
		}()
	}
	first := before.(*ask)
	select {
	case <-first.answer:
		return true
	case <-time.After(time.Until(first.since.Add(patience))):
		return false
	}
}

// answers returns an error if the file system of a mount does not answer: whatever walked through the root would hang
// there.
func (m mount) answers(patience time.Duration) error {
	if Answers(m.dir, patience) {
		return nil
	}
	return fmt.Errorf("the file system at %s (%s) does not answer: unmount it (umount -l %s) or make its server "+
		"answer, then try again", Quote(m.dir), m.kind, command.Quote(m.dir))
}

// findManyNames looks for such mounts in and above directories. mounts is what the kernel says of mounts
// (proc_pid_mountinfo(5)). It fails if one of them does not answer.
func findManyNames(bounds []pathname.Place, mounts string) (found manyNames, err error) {
	var all []mount
	for line := range strings.Lines(mounts) {
		const dir, least = 4, 10
		fields := strings.Fields(line)
		i := slices.Index(fields, "-")
		if len(fields) < least || i < 0 || i+1 >= len(fields) {
			continue
		}
		all = append(all, mount{mountName(fields[dir]), fields[i+1]})
	}
	for _, b := range bounds {
		root := mount{}
		for _, m := range all { // a later one hides an earlier one at the same place
			switch {
			case pathname.Within(b.Real, m.dir) && len(m.dir) >= len(root.dir):
				root = m
			case pathname.Within(m.dir, b.Real):
				if err := m.answers(mountPatience); err != nil {
					return nil, err
				}
				found = found.with(m)
			}
		}
		if root.dir != "" {
			found = found.with(mount{b.Real, root.kind})
		}
	}
	return found, nil
}

// findManyNames finds the file systems that give one file several names, where the containment holds no rules on files.
func (k *policyData) findManyNames(bounds []pathname.Place) (err error) {
	mounts, _ := os.ReadFile("/proc/self/mountinfo") // other systems have none
	if k.manyNames, err = findManyNames(bounds, string(mounts)); len(k.manyNames) == 0 {
		return err
	}
	contain := k.containment
	k.containment = func() Containment {
		c := contain()
		if c.Denies {
			c.Denies, c.Why = false, k.manyNames.why()
		}
		return c
	}
	return nil
}

// with adds a mount if it gives one file several names.
func (a manyNames) with(m mount) manyNames {
	base, _, _ := strings.Cut(m.kind, ".") // fuse.sshfs
	known := slices.Contains(strings.Fields(aliasing), m.kind)
	if known || slices.Contains(strings.Fields(mayBeAliasing), base) && pathname.IgnoresCase(m.dir) {
		return append(a, m)
	}
	return a
}

// mountName decodes a name of mountinfo, in which spaces are \040.
func mountName(name string) string {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		const digits = 3
		if c, err := strconv.ParseUint(name[min(i+1, len(name)):min(i+1+digits, len(name))], 8, 8); name[i] == '\\' &&
			err == nil {
			b.WriteByte(byte(c))
			i += digits
		} else {
			b.WriteByte(name[i])
		}
	}
	return b.String()
}

// why says what the mounts are, "" if there are none.
func (a manyNames) why() string {
	if len(a) == 0 {
		return ""
	}
	return fmt.Sprintf("%s is a file system (%s) that gives one file several names, and the kernel hides a file by one "+
		"of them", Quote(a[0].dir), a[0].kind)
}

// stored returns a path with the names that its directories list for each element. The error says that a directory
// lists no such name.
func (a manyNames) stored(path string) (string, error) {
	for _, m := range a {
		rest, err := filepath.Rel(m.dir, path)
		if err != nil || !filepath.IsLocal(rest) || rest == "." {
			continue
		}
		at := m.dir
		for name := range strings.SplitSeq(rest, string(filepath.Separator)) {
			if name, err = storedName(at, name); err != nil {
				return "", err
			}
			at = filepath.Join(at, name)
		}
		path = at
	}
	return path, nil
}

// errNoStoredName says that the entry of a file is not found.
var errNoStoredName = errors.New("its directory lists no such name, but leads to a file by it: use the name that the " +
	"directory lists")

// storedName returns the name that a directory lists for the file to which name leads; name itself if there is no
// file.
func storedName(dir, name string) (string, error) {
	info, err := os.Lstat(filepath.Join(dir, name))
	if err != nil {
		return name, nil // a file that does not exist has no other name
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == name }) {
		return name, nil
	}
	id, _ := realpath.Identify(info)
	for _, e := range entries {
		if pathname.Folded.Of(e.Name()) == pathname.Folded.Of(name) {
			return e.Name(), nil
		}
		if other, err := e.Info(); err == nil {
			if same, _ := realpath.Identify(other); same == id {
				return e.Name(), nil
			}
		}
	}
	return "", fmt.Errorf("%s: %w", Quote(filepath.Join(dir, name)), errNoStoredName)
}

// ManyNames returns what gives one file several names in the directories of the policy, "" if nothing is known to.
func (p *Policy) ManyNames() string { return p.data.manyNames.why() }
