package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/contract"
	"github.com/toolhost/toolhost/guard/sandbox/internal/kernel"
	"github.com/toolhost/toolhost/guard/sandbox/internal/place"
)

// spawner is the thread that all commands descend from. What it has given up
// they cannot regain.
type spawner struct {
	kernel.Thread
	null int
	mark bool // give every command a UTS namespace
}

// newSpawner starts the thread and waits until it has restricted itself.
func newSpawner(mark bool, restrict func() error) (*spawner, error) {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening /dev/null: %w", err)
	}
	s := &spawner{Thread: kernel.NewThread(), null: null, mark: mark}
	s.Do(func() { err = restrict() })
	return s, err
}

// forked is a command that was started.
type forked struct {
	pid   int
	pidfd int    // or -1
	ns    int    // descriptor of its UTS namespace, or -1
	mark  uint64 // number of that, or 0
}

// start starts a command in a UTS namespace of its own.
func (s *spawner) start(r contract.Request, files []int) (p forked, err error) {
	s.Do(func() { p, err = s.fork(r, files) })
	return p, err
}

func (s *spawner) fork(r contract.Request, given []int) (forked, error) {
	p := forked{pidfd: -1, ns: -1}
	program, err := lookPath(r.Argv[0], r.Env)
	if err != nil {
		return p, err
	}
	attr := &syscall.SysProcAttr{Setsid: true}
	if r.Terminal {
		attr.Setctty, attr.Ctty = true, contract.TerminalFD
		program, r.Argv = "/proc/self/exe", append([]string{"toolhost", contract.Arg, contract.RoleJob, program}, r.Argv...)
	}
	if s.mark {
		if err := unix.Unshare(unix.CLONE_NEWUTS); err != nil {
			return p, fmt.Errorf("making a namespace for the command: %w", err)
		}
		if p.ns, err = unix.Open("/proc/thread-self/ns/uts", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			return p, fmt.Errorf("making a namespace for the command: %w", err)
		}
		id, err := place.InodeOf(p.ns)
		if err != nil {
			unix.Close(p.ns)
			return p, fmt.Errorf("making a namespace for the command: %w", err)
		}
		p.mark = id.Ino
		attr.PidFD = &p.pidfd
	} else {
		attr.Pdeathsig = syscall.SIGKILL
	}
	files := make([]uintptr, 0, max(len(given), 3))
	for _, fd := range given {
		files = append(files, uintptr(fd))
	}
	for len(files) < 3 {
		files = append(files, uintptr(s.null))
	}
	dir := r.Dir
	if dir == "" {
		dir = "/"
	}
	p.pid, err = syscall.ForkExec(program, r.Argv, &syscall.ProcAttr{
		Dir: dir, Env: r.Env, Files: files, Sys: attr,
	})
	if err != nil {
		if p.ns >= 0 {
			unix.Close(p.ns)
		}
		return forked{pidfd: -1, ns: -1, mark: p.mark}, startError(program, dir, err)
	}
	leaveSome(p.pid)
	return p, nil
}

// startError says which of program and directory was at fault.
func startError(program, dir string, err error) error {
	if st, statErr := os.Stat(dir); statErr != nil {
		return fmt.Errorf("working directory %s: %w", dir, errors.Unwrap(statErr))
	} else if !st.IsDir() {
		return fmt.Errorf("working directory %s: %w", dir, unix.ENOTDIR)
	}
	return &os.PathError{Op: "exec", Path: program, Err: err}
}

// lookPath finds a program without a slash in its name in the PATH of env,
// skipping relative entries.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	var path string
	for _, e := range env {
		if value, ok := strings.CutPrefix(e, "PATH="); ok {
			path = value
		}
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		program := filepath.Join(dir, name)
		if st, err := os.Stat(program); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return program, nil
		}
	}
	return "", fmt.Errorf("%s: no such program in PATH (%s)", name, path)
}
