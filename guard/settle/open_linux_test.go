package settle

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestOfHost tells programs of a host from those of a person, also where the host is process 1.
func TestOfHost(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if !ofHost(strconv.Itoa(cmd.Process.Pid)) || !ofHost(strconv.Itoa(os.Getpid())) {
		t.Error("what this process has started is not of the host")
	}
	if ofHost("1") {
		t.Error("process 1 is of a host")
	}
}

// TestLeases knows a file system that grants no leases, and one that does.
func TestLeases(t *testing.T) {
	if err := leases("/proc"); err == nil {
		t.Error("/proc grants leases")
	}
	if err := leases(t.TempDir()); err != nil {
		t.Errorf("the directory of tests grants none: %v", err)
	}
}

// TestCutOff puts a copy in the place of a file that a program of a host has open for writing.
func TestCutOff(t *testing.T) {
	g := newGround(t)
	g.write(".mcp.json", "old")
	g.call(func() {})
	p, err := g.k.place(g.dir)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(g.dir, ".mcp.json"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p.cutOff()
	if _, err := f.WriteString("new"); err != nil {
		t.Fatal(err)
	}
	g.want("after a write to what was open", ".mcp.json=old")
	if notes := p.takeNotes(); len(notes) > 0 {
		t.Error(notes)
	}
}

// TestHungFileSystem looks for the programs that have a file open while one of them has a file of a file system that
// does not answer: only this file may be asked about, and the settlement waits for no other.
func TestHungFileSystem(t *testing.T) {
	server, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skip("no FUSE here: ", err)
	}
	release := sync.OnceFunc(func() { unix.Close(server) }) // every request fails then
	t.Cleanup(release)
	dir := t.TempDir()
	if err := unix.Mount("hung", dir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", server)); err != nil {
		t.Skip("no file system can be mounted here: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	root, err := os.OpenRoot(filepath.Dir(os.Args[0]))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	info, err := root.Stat(filepath.Base(os.Args[0]))
	if err != nil {
		t.Fatal(err)
	}
	hung := time.AfterFunc(time.Minute, release)
	if heldOpenOutside(root, filepath.Base(os.Args[0]), info) {
		t.Error("a program of a person has the program of this test open for writing")
	}
	if !hung.Stop() {
		t.Error("the file system that does not answer was asked")
	}
}

// TestMayWrite reads what the kernel tells about a descriptor.
func TestMayWrite(t *testing.T) {
	for _, c := range []struct {
		fdinfo, inode string
		want          bool
	}{
		{"pos:\t0\nflags:\t0100002\nmnt_id:\t24\nino:\t7\n", "7", true},
		{"pos:\t0\nflags:\t0100001\nmnt_id:\t24\nino:\t7\n", "7", true},
		{"pos:\t0\nflags:\t0100000\nmnt_id:\t24\nino:\t7\n", "7", false},
		{"pos:\t0\nflags:\t0100002\nmnt_id:\t24\nino:\t71\n", "7", false},
		{"pos:\t0\nflags:\t0100002\nmnt_id:\t24\nino:\t71\n", "", true}, // not known
		{"pos:\t0\nflags:\t0100002\nmnt_id:\t24\n", "7", true},          // before Linux 5.14
		{"", "7", false},
	} {
		if got := mayWrite(c.fdinfo, c.inode); got != c.want {
			t.Errorf("mayWrite(%q, %q) = %v", c.fdinfo, c.inode, got)
		}
	}
}

// TestMapped has a task write a file through a mapping whose first write was during a call that has ended: the later
// ones change no time of the file.
func TestMapped(t *testing.T) {
	g := newGround(t)
	g.write(".mcp.json", "old")
	task := g.begin(false)
	task.Background()
	f, err := os.OpenFile(filepath.Join(g.dir, ".mcp.json"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	memory, err := unix.Mmap(int(f.Fd()), 0, 3, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	g.call(func() {
		memory[0] = 'o'
		g.waitForTime(".mcp.json")
	})
	copy(memory, "new")
	if err := unix.Munmap(memory); err != nil {
		t.Fatal(err)
	}
	task.End()
	g.want("the task has ended", ".mcp.json=old")
}

// waitForTime waits until a later change of a file has another time.
func (g *ground) waitForTime(rel string) {
	g.t.Helper()
	for {
		info, err := os.Lstat(filepath.Join(g.dir, rel))
		if err != nil {
			g.t.Fatal(err)
		}
		if !stampOf(info).racy() {
			return
		}
	}
}

// TestClosedMeanwhile has an agent write and close a file while it is looked at which files the agent has open.
func TestClosedMeanwhile(t *testing.T) {
	g := newGround(t)
	g.write(".mcp.json", "old")
	g.waitForTime(".mcp.json")
	task := g.begin(false)
	task.Background()
	p, err := g.k.place(g.dir)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(g.dir, ".mcp.json"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	events, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(events)
	if _, err := unix.InotifyAddWatch(events, f.Name(), unix.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	written := make(chan error)
	go func() {
		_, err := unix.Read(events, make([]byte, 4096))
		_, failed := f.WriteString("new")
		written <- errors.Join(err, failed, f.Close())
	}()
	notes := p.sleep()
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	more, err := p.wake()
	if notes = append(notes, more...); err != nil || len(notes) > 0 {
		t.Error(notes, err)
	}
	task.End()
	g.want("the agent has ended", ".mcp.json=old")
}

// TestEmptiedMeanwhile has a person save a file in place while a command begins: the file is empty for a moment. When the
// command has changed the file, all that the person wrote stands outside.
func TestEmptiedMeanwhile(t *testing.T) {
	defer func(was time.Duration) { openWait = was }(openWait)
	openWait = time.Minute // the person writes in time on any machine
	g := newGround(t)
	g.write(".mcp.json", "old")
	g.call(func() {})
	events, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(events)
	path := filepath.Join(g.dir, ".mcp.json")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.InotifyAddWatch(events, path, unix.IN_CLOSE_NOWRITE); err != nil {
		t.Fatal(err)
	}
	saved := make(chan error)
	go func() {
		_, err := unix.Read(events, make([]byte, 4096)) // the command has looked at it once
		_, failed := f.WriteString("a person's")
		saved <- errors.Join(err, failed, f.Close())
	}()
	g.call(func() {
		if err := <-saved; err != nil {
			t.Error(err)
		}
		g.replace(".mcp.json", "planted")
	})
	g.want("the command has ended", ".mcp.json=a person's")
}
