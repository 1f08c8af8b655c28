package sandbox

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// inputs are files bwrap reads from descriptors, and others to close once it
// runs.
type inputs struct{ files, others []*os.File }

// fill returns a command's files with /dev/null for those that are missing.
func (in *inputs) fill(files []*os.File) ([]*os.File, error) {
	files = slices.Clone(files)
	for len(files) < 3 {
		files = append(files, nil)
	}
	for i := range files {
		if files[i] != nil {
			continue
		}
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		in.others = append(in.others, null)
		files[i] = null
	}
	return files, nil
}

// add passes a file on, as the descriptor first+len(in.files).
func (in *inputs) add(f *os.File, first int) string {
	in.files = append(in.files, f)
	return strconv.Itoa(first + len(in.files) - 1)
}

func (in *inputs) close() {
	for _, f := range slices.Concat(in.files, in.others) {
		f.Close()
	}
}

// bwrapArgs translates a plan. Descriptors from first on are in.files.
func bwrapArgs(pl *plan, in *inputs, first int) ([]string, error) {
	args := []string{
		"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
		"--new-session", "--die-with-parent", "--cap-drop", "ALL",
		"--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
	}
	if !pl.network {
		args = append(args, "--unshare-net")
	}
	var remount []string
	for _, m := range mountsOf(pl) {
		more, err := bwrapMount(m, in, first)
		if err != nil {
			return nil, err
		}
		args = append(args, more...)
		if m.leads {
			remount = append(remount, "--remount-ro", m.path)
		}
	}
	return append(args, remount...), nil
}

// hideArgs has bwrap read its arguments from a file. Commands can read those of process 1, which is bwrap, and what is
// denied would be named in them.
func hideArgs(args []string, in *inputs, first int) ([]string, error) {
	fd, err := memoryFile("arguments", []byte(strings.Join(args, "\x00")+"\x00"))
	if err != nil {
		return nil, err
	}
	file := in.add(os.NewFile(uintptr(fd), "arguments"), first)
	if _, err := unix.Seek(fd, 0, unix.SEEK_SET); err != nil {
		return nil, err
	}
	return []string{"--args", file}, nil
}

// enterArgs is the command bwrap runs: this program, which puts the thread that
// becomes the command under Landlock and the system call filter. bwrap could
// install the filter, but its own process 1, which commands could trace, would
// have neither.
func enterArgs(pl *plan, in *inputs, own ownFiles) ([]string, error) {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	selfFD := in.add(self, own.inputs())
	e := &encoder{}
	pl.encode(e)
	fd, err := memoryFile("plan", e.buf)
	if err != nil {
		return nil, err
	}
	planFD := in.add(os.NewFile(uintptr(fd), "plan"), own.inputs())
	return []string{"/proc/self/fd/" + selfFD, initArg, roleEnter, strconv.Itoa(int(own)), planFD}, nil
}

// place is one mount of a plan.
type place struct {
	target
	option string // --bind or --ro-bind; empty is a mask
	source string // what is bound, if it is not at the path itself
	leads  bool   // a mask with exceptions inside
}

// mountsOf lists what is mounted, parents first and masks of denied paths last.
// Pins are binds here: unlike those of process 1 they are visible as borders
// across which a file is moved by copying, and a link cannot be pinned.
func mountsOf(pl *plan) []place {
	var list []place
	add := func(option string, targets []target) {
		for _, t := range targets {
			list = append(list, place{target: t, option: option})
		}
	}
	for _, p := range pl.private {
		list = append(list, place{target: target{path: p.name, dir: true}, option: "--bind", source: p.dir.path})
		add("--ro-bind-try", p.entries)
	}
	add("--bind", pl.writable)
	for _, dir := range pl.pins {
		if t, err := identify(dir); err == nil && t.dir {
			list = append(list, place{target: t, option: "--bind"})
		}
	}
	add("--ro-bind", pl.readOnly)
	add("--ro-bind", pl.shown)
	for _, t := range pl.masked {
		if !reachable(t.path) {
			continue // for bwrap too, which would fail
		}
		leads := slices.ContainsFunc(slices.Concat(pl.writable, pl.shown), func(e target) bool { return below(e.path, t.path) })
		list = append(list, place{target: t, leads: leads})
	}
	slices.SortStableFunc(list, func(a, b place) int { return strings.Compare(a.path, b.path) })
	add("", pl.denied)
	return list
}

// reachable reports whether root without its capabilities, as in
// a sandbox, may search the directories above path. Other users cannot
// look up what they cannot reach.
func reachable(path string) bool {
	if os.Geteuid() != 0 {
		return true
	}
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		var st unix.Stat_t
		if unix.Stat(dir, &st) != nil {
			return false
		}
		search := uint32(unix.S_IXOTH)
		switch {
		case st.Uid == 0:
			search = unix.S_IXUSR
		case st.Gid == uint32(os.Getegid()):
			search = unix.S_IXGRP
		}
		if st.Mode&search == 0 {
			return false
		}
	}
	return true
}

func bwrapMount(m place, in *inputs, first int) ([]string, error) {
	switch {
	case m.option != "":
		return []string{m.option, cmp.Or(m.source, m.path), m.path}, nil
	case m.leads:
		return []string{"--perms", "0755", "--tmpfs", m.path}, nil
	case m.dir:
		return []string{"--perms", "0000", "--tmpfs", m.path, "--remount-ro", m.path}, nil
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	return []string{"--perms", "0000", "--ro-bind-data", in.add(null, first), m.path}, nil
}
