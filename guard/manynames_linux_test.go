package guard

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/internal/pathname"
)

// aliasNode is a file of aliasFS, its parent's number and its names: the one that its directory lists, and the short one.
type aliasNode struct {
	parent      uint64
	name, short string
	dir         bool
}

// aliasTree is what aliasFS serves, by number. Each file has its name for content.
var aliasTree = map[uint64]aliasNode{
	1: {dir: true}, 2: {1, ".env", "ENV~1", false}, 3: {1, "secrets", "SECRET~1", true},
	4: {3, "production.key", "PRODUC~1.KEY", false}, 5: {1, "README.md", "README.MD", false},
	6: {1, ".claude", "CLAUDE~1", true}, 7: {6, "settings.json", "SETTIN~1.JSO", false},
}

// aliasFS mounts a file system of Windows' kind: letter case does not matter, and long names have a short one, which no directory lists.
func aliasFS(t *testing.T) (dir string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skip("no FUSE here: ", err)
	}
	if err := unix.Mount("alias", dir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fd)); err != nil {
		unix.Close(fd)
		t.Skip("no file system can be mounted here: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }) // which ends serveAliases
	go serveAliases(os.NewFile(uintptr(fd), "fuse"))
	refusePoll(t, dir)
	return dir
}

// refusePoll lets the kernel know that the file system of this process has no poll. Otherwise os.Open could wait forever
// for serveAliases: the runtime adds the file to its epoll set in a system call that keeps the processor of the scheduler.
func refusePoll(t *testing.T, dir string) {
	t.Helper()
	fd, err := unix.Open(filepath.Join(dir, "README.md"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skip("the file system of the test does not work here: ", err)
	}
	defer unix.Close(fd)
	_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
}

// serveAliases answers requests (linux/fuse.h) until the file system is unmounted.
func serveAliases(f *os.File) {
	defer f.Close()
	const head, lookup, forget, getattr, open, read, statfs, initial, opendir, readdir = 40, 1, 2, 3, 14, 15, 17, 26, 27, 28
	le := binary.LittleEndian
	buf := make([]byte, 1<<17)
	for {
		n, err := f.Read(buf)
		if err != nil {
			if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
				continue
			}
			return
		}
		op, unique, node, body := le.Uint32(buf[4:]), le.Uint64(buf[8:]), le.Uint64(buf[16:]), buf[head:n]
		var out []byte
		var failed unix.Errno
		switch op {
		case forget:
			continue
		case initial:
			out = make([]byte, 64)
			le.PutUint32(out, 7)
			le.PutUint32(out[4:], 31)
			le.PutUint32(out[20:], 1<<16)
		case lookup:
			failed = unix.ENOENT
			name := strings.TrimRight(string(body), "\x00")
			for id, c := range aliasTree {
				if id > 1 && c.parent == node && (strings.EqualFold(c.name, name) || strings.EqualFold(c.short, name)) {
					failed = 0
					out = append(le.AppendUint64(nil, id), make([]byte, 32)...)
					out = append(out, aliasAttr(id)...)
				}
			}
		case getattr:
			out = append(make([]byte, 16), aliasAttr(node)...)
		case open, opendir, statfs:
			out = make([]byte, 16+64*int(btoi(op == statfs)))
		case read:
			out = []byte(aliasTree[node].name)[min(int(le.Uint64(body[8:])), len(aliasTree[node].name)):]
		case readdir:
			if le.Uint64(body[8:]) == 0 {
				out = aliasEntries(node)
			}
		default:
			failed = unix.ENOSYS
		}
		answer := le.AppendUint32(nil, uint32(16+len(out)))
		answer = le.AppendUint64(le.AppendUint32(answer, uint32(-int32(failed))), unique)
		if _, err := f.Write(append(answer, out...)); err != nil && errors.Is(err, io.EOF) {
			return
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func aliasAttr(id uint64) []byte {
	n := aliasTree[id]
	mode := uint32(unix.S_IFREG | 0o666)
	if n.dir {
		mode = unix.S_IFDIR | 0o777
	}
	le := binary.LittleEndian
	a := le.AppendUint64(nil, id)
	a = le.AppendUint64(a, uint64(len(n.name)))
	a = append(a, make([]byte, 8*4+4*3)...)
	a = le.AppendUint32(le.AppendUint32(a, mode), 1)
	return append(a, make([]byte, 88-len(a))...)
}

func aliasEntries(dir uint64) (out []byte) {
	le := binary.LittleEndian
	for id := uint64(2); id <= uint64(len(aliasTree)); id++ {
		n := aliasTree[id]
		if n.parent != dir {
			continue
		}
		kind := uint32(unix.DT_REG)
		if n.dir {
			kind = unix.DT_DIR
		}
		out = le.AppendUint64(le.AppendUint64(out, id), id)
		out = append(le.AppendUint32(le.AppendUint32(out, uint32(len(n.name))), kind), n.name...)
		for len(out)%8 != 0 {
			out = append(out, 0)
		}
	}
	return out
}

// A file that has several names is denied by each, and so is what lies below a denied directory; commands are asked.
func TestSeveralNamesOfOneFile(t *testing.T) {
	ws := aliasFS(t)
	if raw, err := os.ReadFile(filepath.Join(ws, "SECRET~1", "PRODUC~1.KEY")); err != nil ||
		string(raw) != "production.key" {
		t.Skipf("the file system of the test does not work here: %s, %v", raw, err)
	}
	p := policy(t, ws, testRules(ws, "deny Read(.env)\ndeny Read(secrets/**)"), contained)
	if p.ManyNames() == "" {
		t.Fatal("the mount is not recognized")
	}
	for name, want := range map[string]Action{
		".env": Deny, ".ENV": Deny, "ENV~1": Deny, "env~1": Deny, "secrets/production.key": Deny, "SECRET~1/production.key": Deny, "SECRETS/PRODUC~1.KEY": Deny, "SECRET~1/new.txt": Deny,
		"README.md": Allow, "readme.MD": Allow,
	} {
		path, err := p.Resolve(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := p.Judge(Intent{Tool: "Read", Effects: []Effect{Read{Path: path}}}); got.Action != want {
			t.Errorf("Read %s: %v by %s, want %v", name, got.Action, got.Rule, want)
		}
	}
	path, err := p.Resolve("CLAUDE~1/SETTIN~1.JSO")
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Judge(Intent{Tool: "Write", Effects: []Effect{Write{Path: path}}}); got.Action != Deny {
		t.Errorf("settings are written by another name: %v by %s", got.Action, got.Rule)
	}
	dir, err := p.Resolve(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"python3 x.py", "cat ENV~1", "echo x > CLAUDE~1/settings.json"} {
		if got := p.Judge(Intent{Tool: "Bash", Effects: []Effect{Exec{Text: command, Dir: dir}}}); got.Action == Allow {
			t.Errorf("%s is allowed by %s", command, got.Rule)
		}
	}
	free := policy(t, ws, testRules(ws, "allow Bash(ls:*)"), contained)
	if got := free.Judge(Intent{Tool: "Bash", Effects: []Effect{Exec{Text: "ls -la", Dir: dir}}}); got.Action != Allow {
		t.Errorf("without rules on files a command is %v by %s", got.Action, got.Rule)
	}
}

// TestSilentMount: a file system that does not answer is named, also to those that ask again, and answers later.
func TestSilentMount(t *testing.T) {
	server, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skip("no FUSE here: ", err)
	}
	dir := t.TempDir()
	if err := unix.Mount("silent", dir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", server)); err != nil {
		unix.Close(server)
		t.Skip("no file system can be mounted here: ", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	m := mount{dir, "fuse"}
	for range 2 {
		if err := m.answers(time.Millisecond); err == nil || !strings.Contains(err.Error(), "umount -l '"+dir+"'") {
			t.Error(err)
		}
	}
	waits := make(chan error, 1)
	go func() { waits <- m.answers(time.Hour) }() // the earlier question does not shorten its patience
	unix.Close(server)                            // every request fails then, which is an answer
	if err := <-waits; err != nil {
		t.Error(err)
	}
}

func TestFindManyNames(t *testing.T) {
	const mounts = `22 1 0:21 / / rw - ext4 /dev/sda rw
30 22 0:30 / /mnt/c rw - 9p C:\134 rw
31 22 0:31 / /ws/my\040disk rw,relatime shared:1 - vfat /dev/sdb rw
32 22 0:32 / /other rw - ntfs3 /dev/sdc rw
33 22 0:33 / /ws/fuse rw - fuse.sshfs x rw
`
	place := func(dir string) pathname.Place { return pathname.Place{Given: dir, Real: dir} }
	if got, err := findManyNames([]pathname.Place{place("/ws")}, mounts); err != nil || len(got) != 1 || got[0].dir != "/ws/my disk" ||
		got[0].kind != "vfat" {
		t.Errorf("below /ws: %v", got)
	}
	if got, err := findManyNames([]pathname.Place{place("/other/deep")}, mounts); err != nil || len(got) != 1 ||
		got[0] != (mount{"/other/deep", "ntfs3"}) {
		t.Errorf("in /other: %v", got)
	}
	if got, err := findManyNames([]pathname.Place{place("/home/u")}, mounts); err != nil || len(got) != 0 {
		t.Errorf("elsewhere: %v", got)
	}
}
